"""Statistics of evaluations: intervals, paired tests, calibration. Numbers in, numbers out."""
