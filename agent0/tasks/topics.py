"""What a teacher's word problems may be about: a topic is drawn for each request, since a small model that is asked for
one problem after the other writes a few of them again and again."""

import random

TOPICS = (
    "baking bread", "buying groceries", "a bus journey", "saving pocket money", "a farm with hens", "painting a fence",
    "reading a book", "a school trip", "filling a water tank", "planting trees", "a football club", "sorting letters",
    "a cinema", "cooking soup", "renting bicycles", "picking apples", "a library", "a train timetable", "sewing shirts",
    "a charity sale", "packing boxes", "a swimming pool", "walking a dog", "a phone contract", "building a wall",
    "feeding cats", "a birthday party", "a photo album", "mowing lawns", "a coffee shop", "collecting stamps",
    "a marathon", "an aquarium", "laying tiles", "a school canteen", "ages in a family", "a car's fuel", "weekly wages",
    "a flower shop", "downloading films", "a hotel", "knitting scarves", "a vegetable garden", "washing cars",
    "a bookshop's discount", "brewing tea", "a hiking tour", "a choir", "recycling bottles", "a toy factory",
    "a dentist's appointments", "sharing sweets", "a ferry", "printing leaflets", "a basketball season",
    "a pizza delivery", "learning words of a language", "a museum", "charging batteries", "a beekeeper",
)  # fmt: skip
"""Everyday subjects whose quantities can be added, shared, multiplied and compared."""


def topic_of(seed: int) -> str:
    """The topic of the request with this ``seed``."""
    return random.Random(f"topic {seed}").choice(TOPICS)
