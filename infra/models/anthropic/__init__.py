"""Anthropic's models, through its official client."""
