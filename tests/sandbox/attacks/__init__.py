"""Programs that want out, each with what must come of it. Sleeping, forking, forging, reading what is not theirs."""

from tests.sandbox.attacks import commands, kernel, reach, resources, results, survivors
from tests.sandbox.attacks.table import ATTACKS, Attack

__all__ = ["ATTACKS", "Attack", "commands", "kernel", "reach", "resources", "results", "survivors"]
