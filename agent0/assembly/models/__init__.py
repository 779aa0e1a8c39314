"""Part of the rim: checkpoints compared, evaluated, exported and promoted."""
