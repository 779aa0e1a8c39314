"""Protocols that adapters in ``infra`` implement. A handler names the ports it needs as parameters."""
