"""Commands about work on repositories."""
