"""What is decided by knowing the kind of an answer, not by algebra: quantities, sets of solutions, lists with dots.

``decisions`` has the kinds in their order. Each function decides one kind: True or False where the expected answer is
of it, None for everything else.
"""
