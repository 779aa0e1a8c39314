"""Where code nobody has read runs: a port to fresh, confined sandbox processes that refuses rather than runs with
less."""

from agent0.infra.sandbox.backends.bubblewrap import Bubblewrap, Refusing
from agent0.infra.sandbox.selection import BackendCandidate, open_sandbox, survey
from agent0.infra.sandbox.selftest import Probe

__all__ = ["BackendCandidate", "Bubblewrap", "Probe", "Refusing", "open_sandbox", "survey"]
