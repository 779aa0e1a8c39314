"""The files that run inside the sandbox while a program is tested: standard library only, they import one another.

No process outside a sandbox imports them; ``agent0.verification.programs`` writes them into work folders.
"""
