"""Inference of small Qwen2 models."""
