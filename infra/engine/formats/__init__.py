"""The formats of numbers in which a processor computes a model's matrices."""
