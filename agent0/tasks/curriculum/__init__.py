"""Which tasks are requested next, and what keeps them broad."""
