"""Answers computed from the tables of documents: cells, rows, counts and extremes, without a model."""
