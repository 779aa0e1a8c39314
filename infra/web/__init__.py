"""The proxy through which tools reach the web."""
