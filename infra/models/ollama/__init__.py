"""Models of an Ollama server: the provider, what the server says of them, and how they are made and probed."""
