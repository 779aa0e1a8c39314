"""Thought: pure functions and the ports they need. No I/O, no clock, no environment.

The rim (``assembly``, ``cli/``) lives here too: it may import every room and is imported by none.
"""
