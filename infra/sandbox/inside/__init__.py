"""What runs inside the sandbox: standard library only, bound read-only, never importing the rest of the project."""
