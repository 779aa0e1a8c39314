"""Commands about settings, the machine and the documentation."""
