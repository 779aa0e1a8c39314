"""Part of the rim: environments, and families as environments."""
