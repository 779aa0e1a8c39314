"""Verifies that code became simpler and gives the same: measures say the first, without running it, calls the second.

The calls are those of the task and others, drawn anew for each work folder from its digest, whose values on the code
before are compared outside of the sandbox. So nobody can know them, and there is nothing to forge.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from agent0.events.base import Value
from agent0.ports.sandbox import Sandbox
from agent0.tasks.mining.drawn_calls import drawn_calls
from agent0.tools.snapshots import fingerprint
from agent0.verification.repositories.code_measures import CodeMeasures, UnmeasurableError, measured
from agent0.verification.repositories.hidden_values import ModuleCalls, is_same, values_of
from agent0.verification.repositories.seeded_defects import ReviewedModule

DRAWN = 40
"""Calls of each function that are drawn for a work folder."""
_ARGUMENT = "(lambda argument: ({function}(argument), argument))({argument})"
"""A call that shows what it does to its argument, too."""


class HiddenMeasures(Value):
    """What a package may measure at most, the calls of the task with their values, and its functions by module."""

    package: str
    complexity: int
    size: int
    calls: tuple[ModuleCalls, ...]
    modules: tuple[ReviewedModule, ...]


@dataclass(frozen=True)
class SimplerCode:
    """Measures and calls that decide; ``before`` are the files of the package as they were."""

    hidden: HiddenMeasures
    before: Mapping[str, bytes]
    seconds: float

    @property
    def tests(self) -> list[str]:
        """The calls of the task, each with its module."""
        return [f"{module.module}: {call}" for module in self.hidden.calls for call, _ in module.calls]

    async def accept(self, code: Mapping[str, bytes], sandbox: Sandbox) -> tuple[bool | None, str]:
        """Whether ``code`` measures at most what it may and all calls give what they did, and why not; the rest as for
        ``grade``."""
        return (await self.grade(code, sandbox))[:2]

    async def grade(self, code: Mapping[str, bytes], sandbox: Sandbox) -> tuple[bool | None, str, float | None]:
        """Whether ``code`` measures at most what it may and all calls give what they did, why not, and how much of the
        way to both bounds it is; 0 where a call gives another value. None where the sandbox itself failed.

        Raises:
            SandboxUnavailableError: there is no sandbox.
        """
        package = self.hidden.package
        files = {path: data for path, data in code.items() if path.startswith(f"{package}/") and path.endswith(".py")}
        try:
            measures = measured(files, package)
        except UnmeasurableError as error:
            return False, str(error), 0.0
        why, share = self._excess(measures), self._share(measures)
        if why and not share:
            return False, why, 0.0
        drawn = self._drawn(fingerprint(files))
        changed, problem, sandbox_failed = await values_of([*self.hidden.calls, *drawn], files, sandbox, self.seconds)
        if problem:
            return (None, problem, None) if sandbox_failed else (False, problem, 0.0)
        before, problem, _ = await values_of(drawn, self.before, sandbox, self.seconds)
        if problem:
            return None, problem, None
        expected = [value for module in self.hidden.calls for _, value in module.calls]
        expected += [value for part in before for value in part]
        texts = [value for part in changed for value in part]
        wrong = sum(not is_same(*pair) for pair in zip(expected, texts, strict=True))
        if wrong:
            return False, f"{wrong} of {len(expected)} calls give another value", 0.0
        return not why, why, share

    def _share(self, measures: CodeMeasures) -> float:
        """How much of the way from the measures before to their bounds is done, of the one that lags."""
        before = measured(self.before, self.hidden.package)
        ways = (
            (before.complexity - measures.complexity, before.complexity - self.hidden.complexity),
            (before.size - measures.size, before.size - self.hidden.size),
        )
        return round(max(0.0, min(1.0, *(done / most for done, most in ways))), 4)

    def _excess(self, measures: CodeMeasures) -> str:
        """What is above its bound; empty where nothing is."""
        for name, value, most in (
            ("complexity", measures.complexity, self.hidden.complexity),
            ("size", measures.size, self.hidden.size),
        ):
            if value > most:
                return f"its {name} is {value}, and {most} is the most"
        return ""

    def _drawn(self, seed: str) -> list[ModuleCalls]:
        """Calls of every function, drawn from ``seed``."""
        rng = random.Random(f"{self.hidden.package} {seed}")
        return [
            ModuleCalls(
                module=f"{self.hidden.package}.{module.name}",
                prelude=module.prelude,
                calls=tuple(
                    (_ARGUMENT.format(function=name, argument=call.expression[len(name) + 1 : -1]), "")
                    for name in module.functions
                    for call in drawn_calls(module.name, name, DRAWN, rng)
                ),
            )
            for module in self.hidden.modules
        ]
