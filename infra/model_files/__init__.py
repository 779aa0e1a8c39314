"""Where files of models are fetched from, one place a file."""
