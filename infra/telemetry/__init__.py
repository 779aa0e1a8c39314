"""What this process says of itself while it works: logs as JSON, bound to what they are about."""
