"""How sure a student was of an answer: signals from its tokens, and their calibration."""
