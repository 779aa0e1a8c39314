"""Causes why runs go badly, a file for each place where they lie."""
