"""Many documents, one account. `pipeline.py` is the loop; each other file is one stage: what it asks, reads and records."""
