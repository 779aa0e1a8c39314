"""Charts of runs and studies."""
