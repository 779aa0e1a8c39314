"""The sealer and archives of the log."""
