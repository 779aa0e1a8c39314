"""Part of the rim: opens the log, ports and tables that a process needs."""
