"""The parts that rewards are made of, one file each."""
