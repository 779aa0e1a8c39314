"""Causes why runs go badly, one file each."""
