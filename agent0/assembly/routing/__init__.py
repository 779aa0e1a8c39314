"""Part of the rim: budgets of model calls, as commands and runs use them."""
