"""What training optimises: pure functions on tensors."""
