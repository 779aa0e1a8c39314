"""Commands about benchmarks and reports."""
