"""A checkpoint evaluated through a strategy."""
