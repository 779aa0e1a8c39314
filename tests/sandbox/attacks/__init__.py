"""Programs that want out, each with what must come of it. Sleeping, forking, forging, reading what is not theirs."""

import importlib
import pkgutil

from tests.sandbox.attacks.table import ATTACKS, Attack, Seen, faults

__all__ = ["ATTACKS", "Attack", "Seen", "faults"]

for _found in sorted(m.name for m in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_found}")
