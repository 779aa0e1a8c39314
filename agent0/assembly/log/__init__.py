"""Part of the rim: export, import, rollover and integrity of a log."""
