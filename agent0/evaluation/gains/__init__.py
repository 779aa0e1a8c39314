"""What training on parts of an iteration does for the student: tasks to measure it on, and the measurement."""
