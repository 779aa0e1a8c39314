"""Verifies changes to repositories: by hidden tests, which run in the sandbox on the changed files."""
