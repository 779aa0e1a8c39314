"""Part of the rim: settings from flags, environment, files and defaults."""
