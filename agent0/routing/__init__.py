"""Which model answers, and what that may cost: the rules of budgets and prices."""
