"""Part of the rim: what the tests of a release do before anything is changed, in three runs."""

from collections import Counter
from dataclasses import dataclass

from agent0.ports.sandbox import Sandbox
from agent0.verification.repositories.hidden_tests import TestRun
from agent0.verification.repositories.mined_task import HiddenTests, SourceRecord
from agent0.verification.repositories.source_tree import SourceTree

LONGEST_S, WATCHED = 120.0, 6
"""Seconds that all tests of a package may take; how many times as long while each call is watched."""
TRIALS = 3


class UnusableError(Exception):
    """A package or a candidate gives no task; the message says why."""


@dataclass(frozen=True)
class Release:
    """A release with its files, read from ``source``."""

    package: str
    source: SourceRecord
    tree: SourceTree

    @property
    def title(self) -> tuple[str, str]:
        """What a statement calls it: package and version."""
        return self.package, self.source.version

    @property
    def tests(self) -> HiddenTests:
        """All of its own tests."""
        return HiddenTests(self.tree.frame, self.tree.packages, self.tree.test_modules, (), LONGEST_S)

    @property
    def code(self) -> dict[str, bytes]:
        """Its code by path."""
        return {path: self.tree.files[path] for path in self.tree.code}


@dataclass(frozen=True)
class Baseline:
    """``stable`` tests passed in all three runs, ``flaky`` ones in some; ``run`` is one of them, ``seconds`` what all
    of its tests took."""

    stable: frozenset[str]
    flaky: frozenset[str]
    run: TestRun
    seconds: float


async def baseline(release: Release, sandbox: Sandbox) -> Baseline:
    """Run the tests of ``release`` three times on its own code.

    Raises:
        UnusableError: it has no tests, they fail, hang, or take too long.
        SandboxUnavailableError: there is no sandbox.
    """
    tree = release.tree
    for lacking, why in ((tree.code, "no Python code"), (tree.test_modules, "no tests"), (tree.licence, "no licence")):
        if not lacking:
            raise UnusableError(f"it has {why}")
    passed: list[frozenset[str]] = []
    for _ in range(TRIALS):
        run = sound(await release.tests.run(release.code, sandbox))
        if not run.passed:
            raise UnusableError(f"its tests fail before any change: {_first_failure(run)}"[:200])
        passed.append(run.passed)
    stable = frozenset.intersection(*passed)
    return Baseline(stable, frozenset.union(*passed) - stable, run, sum(run.seconds.values()))


def sound(run: TestRun) -> TestRun:
    """``run``, where it came to its end.

    Raises:
        UnusableError: it did not.
    """
    if run.problem:
        raise UnusableError(run.problem)
    return run


def _first_failure(run: TestRun) -> str:
    """The most frequent last line of what went wrong."""
    messages = [
        text.strip().splitlines()[-1] for text in (*run.broken.values(), *run.messages.values()) if text.strip()
    ]
    return Counter(messages).most_common(1)[0][0].strip() if messages else "none is collected"
