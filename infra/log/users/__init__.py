"""Users of the log's server: what each may do, and what it proves itself with."""
