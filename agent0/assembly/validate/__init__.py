"""Part of the rim: checks of a run's settings before it starts."""
