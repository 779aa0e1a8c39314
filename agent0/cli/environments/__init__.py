"""Commands for task families and environments."""
