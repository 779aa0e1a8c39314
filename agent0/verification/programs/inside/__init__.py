"""What runs inside the sandbox while a program is judged: standard library only; its files import one another by name.

Nothing here is ever imported by a process that matters; ``agent0.verification.programs`` lays these files into work
folders.
"""
