"""Part of the rim: what other systems are told of a log: spans to a collector, notices to a webhook."""
