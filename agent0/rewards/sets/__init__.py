"""Reward sets. To add one, write a file with one ``@reward_set`` function, and its own parts."""
