"""Experiments: a run's past under other rules, and ablation studies over seeds."""
