"""Generated pages of docs/ and model cards."""
