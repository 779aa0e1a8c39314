"""Commands about which model answers, and what that costs."""
