"""Artifacts, datasets and SQLite files on disk."""
