"""Training over several processes, and its memory."""
