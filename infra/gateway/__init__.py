"""What stands between a run and models that cost money: prices, and budgets that cannot be overrun."""
