"""Answers brought to one notation, both sides alike: nothing is computed, so work that is left to be done stays so.

``steps`` has the rules in their order; one file a subject. A new spelling of something goes into that subject's file.
"""
