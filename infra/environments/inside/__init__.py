"""What runs in the process of an environment, with its packages: nothing of ours is imported there."""
