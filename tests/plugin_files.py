"""Files of a user's for tests: a reward, and whatever else; what they register is forgotten afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

from agent0.assembly.runtime import plugins
from agent0.registry import LOADED, REGISTRIES

REWARD = '''"""Rewards a right answer in few words."""

import agent0


@agent0.reward("brevity", role="student", reads=("correct", "tokens"))
def brevity(features: agent0.Features) -> float | None:
    """Falls from 1 at no token to 0 at 200; 0 where the answer is wrong."""
    if features["correct"] is None or features["tokens"] is None:
        return None
    return max(0.0, 1 - features["tokens"] / 200) if features["correct"] else 0.0
'''


@contextmanager
def forgotten() -> Iterator[None]:
    """What is registered meanwhile is not registered afterwards. At first no file counts as loaded, whatever another
    test of this process left."""
    plugins._load_packaged()
    kept = [(registry, dict(registry.entries)) for registry in REGISTRIES if registry.loaded]
    held, adds = dict(LOADED), dict(plugins._adds)
    LOADED.clear()
    try:
        yield
    finally:
        for registry, entries in kept:
            registry.entries = entries
        for mine, before in ((LOADED, held), (plugins._adds, adds)):
            mine.clear()
            mine.update(before)
