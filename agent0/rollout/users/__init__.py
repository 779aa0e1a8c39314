"""Who reads what a student writes to the user of an episode."""
