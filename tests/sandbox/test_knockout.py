"""The suite notices where a layer is missing: one of them in ``make test``, all with ``make knockout``."""

import json

import pytest

from benchmarks import knockout
from benchmarks.knockout import LAYERS
from tests.sandbox.attacks import ATTACKS

MISSED = {
    "system call filter": ("S07-ptrace-parent", "N03-raw-families", "E08-the-host's-disks"),
    "locks of own files only": ("C01-lock-what-all-share", "C02-lock-while-a-thread-swaps-the-file"),
    "waits on words of one process only": ("C11-wait-on-a-word-that-all-share",),
    "times of devices": ("C05-times-of-what-all-share",),
    "memory watchdog": ("R27-memory-of-a-thread's-children",),
    "closed descriptors": ("P06-inherited-fds",),
}


@pytest.mark.slow
@pytest.mark.parametrize("layer", MISSED)
def test_a_missing_layer_lets_attacks_through(layer: str) -> None:
    found = knockout.alone([layer], MISSED[layer])
    assert found["closed"] == ""
    assert set(found["red"]) == set(MISSED[layer])


@pytest.mark.slow
def test_with_all_layers_the_same_attacks_come_to_nothing() -> None:
    found = knockout.alone([], [name for names in MISSED.values() for name in names])
    assert (found["red"], found["wounds"], found["closed"]) == ({}, [], "")


def test_layers_are_named_once_and_lean_on_known_ones_and_attacks() -> None:
    names = [layer.name for layer in LAYERS]
    assert len(names) == len(set(names)) >= 20
    assert {name for layer in LAYERS for name in layer.covered} <= set(names)
    assert {attack for layer in LAYERS for attack in layer.only} <= {attack.id for attack in ATTACKS}


def test_a_layer_that_nothing_misses_is_told() -> None:
    idle = {"red": {}, "wounds": [], "closed": ""}
    layer = next(layer for layer in LAYERS if not layer.covered and not layer.kept)
    assert knockout.judged(layer, idle, None, None)["carries"] is False
    assert json.dumps(knockout.judged(layer, {**idle, "wounds": ["a file changed"]}, None, None)["carries"]) == "true"
