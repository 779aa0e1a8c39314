"""The parts that rewards are made of, one file per kind."""
