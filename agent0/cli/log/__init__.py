"""Commands about the log, its artifacts and its tables."""
