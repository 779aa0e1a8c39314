"""Servers that speak OpenAI's API: the provider, the ways to ask each kind for token ids, and what its errors mean."""
