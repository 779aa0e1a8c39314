"""Commands about tools and the sandbox."""
