"""Part of the rim: what other systems get of a log: spans for a collector, notices for a webhook."""
