"""Part of the rim: mine tasks from the source distributions of a package index."""
