"""Is an attempt right: verifiers, panel, programs, verdicts, human review."""
