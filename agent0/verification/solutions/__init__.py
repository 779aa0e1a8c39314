"""Verifies work on a person's own repository: by their check, and by what each kind of work is to show."""
