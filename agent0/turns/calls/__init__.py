"""Calls of tools in all forms that models write, and what is only talked about."""
