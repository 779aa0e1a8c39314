"""Part of the rim: forks, rescoring, re-verification and retraining of recorded runs."""
