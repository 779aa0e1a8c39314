"""Embeddings of tasks and the indexes that search them."""
