"""Answers that are looked up, without a model: in the tables of documents, and in the catalogue of the collection."""
