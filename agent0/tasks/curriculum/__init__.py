"""Which tasks are requested next, and the constraints that keep them diverse."""
