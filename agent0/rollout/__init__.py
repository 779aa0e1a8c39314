"""How teacher and student generate: prompts, parsing, attempts, confidence."""
