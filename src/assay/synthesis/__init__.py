"""Synthesis of many documents into one account. `pipeline.py` is the loop; each stage is a module."""
