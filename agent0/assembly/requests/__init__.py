"""Part of the rim: what persons ask of runs and their students, as events to append."""
