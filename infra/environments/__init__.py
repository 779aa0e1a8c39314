"""Environments of others that run in processes of their own."""

ENVIRONMENTS = "environments"
"""The folder of the added ones in the data folder; what they are installed in is hidden there."""
