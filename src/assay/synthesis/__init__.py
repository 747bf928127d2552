"""Synthesis of many documents into one account. `pipeline.py` is the loop, `stages/` has one module per stage."""
