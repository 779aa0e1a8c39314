"""Programs that want out, each with what must come of it. Sleeping, forking, forging, reading what is not theirs."""

from tests.sandbox.attacks import accounting, commands, kernel, reach, resources, results, survivors
from tests.sandbox.attacks.table import ATTACKS, Attack

__all__ = ["ATTACKS", "Attack", "accounting", "commands", "kernel", "reach", "resources", "results", "survivors"]
