"""Part of the rim: studies of variants over seeds, a process for each run."""
