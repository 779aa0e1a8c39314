"""What runs inside the sandbox while a program is tested: standard library only, its files import one another.

It is a trusted package of the sandbox's root, so it is imported as ``judged`` there, before anything of a call exists.
"""
