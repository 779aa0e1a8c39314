"""The store of artifacts that hosts without a common folder share: chunks in a stream of the log's servers."""
