"""How servers of models are called: slots, answers in parts, and their refusals."""
