"""How good a checkpoint is: scores, protocols, promotion, benchmarks."""
