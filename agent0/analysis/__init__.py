"""What scores are made of: where they are lost, how tools are used, how varied solutions are, what may be claimed."""
