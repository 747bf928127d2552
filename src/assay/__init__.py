"""Assay answers questions from a person's own documents and shows its evidence."""

__version__ = "0.1.0"
