"""Which tasks there are: families, curriculum, splits, screening, decontamination."""
