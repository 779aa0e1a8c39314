"""Which trajectories are trained on, and with which loss."""
