"""Shorter prompts: what ranks lines, and a model that is asked by them."""
