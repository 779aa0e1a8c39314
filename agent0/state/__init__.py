"""What is known of a run at one of its events."""
