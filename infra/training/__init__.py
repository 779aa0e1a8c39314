"""Training of adapters and whole models."""
