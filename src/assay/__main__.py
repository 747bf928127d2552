"""`python -m assay` is the command line."""

from assay.cli.main import main

if __name__ == "__main__":
    main()
