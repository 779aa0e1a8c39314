"""Whole replies of language models, brought into the form in which their last statement can be read."""
