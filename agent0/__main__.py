"""``python -m agent0``."""

from agent0.cli import main

main()
