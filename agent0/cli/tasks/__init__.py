"""Commands about tasks, trajectories and rewards."""
