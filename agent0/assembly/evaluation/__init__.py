"""Part of the rim: benchmark runs and calibration."""
