"""Ways to confine a call: bubblewrap or a container, warm or cold."""
