"""Programs that want out, each with what must come of it. Sleeping, forking, forging, reading what is not theirs."""

from agent0.registry import import_all
from tests.sandbox.attacks.table import ATTACKS, Attack, Seen, faults

__all__ = ["ATTACKS", "Attack", "Seen", "faults"]

import_all(__name__)
