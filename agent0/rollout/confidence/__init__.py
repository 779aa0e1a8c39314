"""How confident a student was in an answer: signals from its tokens, and their calibration."""
