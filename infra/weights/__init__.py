"""Weight files: safetensors and GGUF."""
