"""The transformers engine and LoRA training, on a two-layer model with random weights."""
