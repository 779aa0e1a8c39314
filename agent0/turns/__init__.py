"""What models write in a turn: marks of turns, thoughts and calls of tools, pure and without trust."""
