"""Part of the rim: tools and workspaces outside a run."""
