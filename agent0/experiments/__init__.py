"""The past again under other rules, and studies of variants over seeds."""
