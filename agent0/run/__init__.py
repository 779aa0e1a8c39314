"""The loop: how a run's state follows from its events, and what is requested next."""
