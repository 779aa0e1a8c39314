"""What the log proves of itself: hash chain, redaction, artifact references, fork history."""
