"""Part of the rim: work on functions of published packages, mined: reviews, tests, simpler code, documentation."""
