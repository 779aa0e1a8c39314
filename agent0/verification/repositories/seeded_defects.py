"""Verifies reviews of a repository: a defect is named by file, line and a call that it makes wrong, which execution
confirms; what is named beside that costs, and what is right must be passed.

A review is read, not run: its calls are made on the files of the task and on right ones, twice, and compared outside.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent0.events.base import Value
from agent0.ports.sandbox import Sandbox
from agent0.verification.repositories.hidden_values import RAISES, ModuleCalls, is_readable, is_same, values_of
from agent0.verification.repositories.wrong_versions import FormError, called

REVIEW, CLEAN = "review.txt", "no defects"
"""The file that a student writes, and all of it where nothing is wrong."""
MOST, LARGEST, FALSE_ALARM = 10, 16_384, 0.5
"""Defects that a review may name, its bytes, and what one costs that is none, in defects."""
NEAR = 1
"""Lines by which a line may be off."""
REVIEWED = "reviewed"
"""The folder of the hidden files that has the task's own."""
_RIGHT = "right"
_LINE = re.compile(r"([A-Za-z0-9_/]{1,200})\.py:([0-9]{1,5}): (.{1,2000})")


class Defect(Value):
    """A defect of the file ``module`` (without .py), from line ``first`` to line ``last``."""

    module: str
    first: int
    last: int


class ReviewedModule(Value):
    """A module with the ``functions`` that a review may call, after ``prelude`` was run."""

    name: str
    prelude: str
    functions: tuple[str, ...]


class HiddenDefects(Value):
    """All defects of a package; none of one that is right. ``package`` is empty where modules have their whole names,
    as those of published packages."""

    package: str
    modules: tuple[ReviewedModule, ...]
    defects: tuple[Defect, ...]


@dataclass(frozen=True)
class _NamedDefect:
    module: str
    line: int
    function: str
    expression: str


@dataclass(frozen=True)
class SeededDefects:
    """The defects that a review is to name; ``files`` are right ones, and below ``REVIEWED`` those of the task."""

    hidden: HiddenDefects
    files: Mapping[str, bytes]
    seconds: float

    @property
    def tests(self) -> list[str]:
        """The defects, by module and line."""
        return [f"{defect.module}:{defect.first}" for defect in self.hidden.defects]

    async def accept(self, code: Mapping[str, bytes], sandbox: Sandbox) -> tuple[bool | None, str]:
        """Whether the review in ``code`` names every defect and nothing else; the rest as for ``grade``."""
        return (await self.grade(code, sandbox))[:2]

    async def grade(self, code: Mapping[str, bytes], sandbox: Sandbox) -> tuple[bool | None, str, float | None]:
        """Whether the review in ``code`` names every defect and nothing else, why not, and the share that is earned.
        None where the sandbox itself failed.

        Raises:
            SandboxUnavailableError: there is no sandbox.
        """
        functions = {name: module for module in self.hidden.modules for name in module.functions}
        try:
            claims = _claims(code.get(REVIEW, b""), set(functions))
        except FormError as error:
            return False, str(error), 0.0
        if not claims:
            clean = not self.hidden.defects
            return clean, "it is right, and passed" if clean else "no defect is named", float(clean)
        modules = self._calls(claims)
        values, problem, sandbox_failed = await values_of(modules, self._files(), sandbox, self.seconds)
        if problem:
            return (None, problem, None) if sandbox_failed else (False, problem, 0.0)
        texts = [text for part in values for text in part]
        right, reviewed, again = (texts[at * len(claims) : (at + 1) * len(claims)] for at in range(3))
        wrong = [_is_wrong(*each) for each in zip(right, reviewed, again, strict=True)]
        named = {self._defect(claim) for claim, confirmed in zip(claims, wrong, strict=True) if confirmed} - {None}
        count, false = len(self.hidden.defects), len(claims) - len(named)
        share = max(0.0, len(named) - FALSE_ALARM * false) / count if count else 0.0
        why = (
            f"{len(named)} of {count} defects are named and confirmed, {false} of {len(claims)} lines are false alarms"
        )
        return bool(count) and len(named) == count and not false, why, round(share, 4)

    def _defect(self, claim: _NamedDefect) -> Defect | None:
        """The defect at the line of a claim."""
        for defect in self.hidden.defects:
            if defect.module == claim.module and defect.first - NEAR <= claim.line <= defect.last + NEAR:
                return defect
        return None

    def _calls(self, claims: Sequence[_NamedDefect]) -> list[ModuleCalls]:
        """The calls of all claims in order, on right files, on those of the task, and on right ones again."""
        package = f"{self.hidden.package}." if self.hidden.package else ""
        by_function = {name: module for module in self.hidden.modules for name in module.functions}
        return [
            ModuleCalls(
                module=f"{package}{by_function[claim.function].name}",
                prelude=by_function[claim.function].prelude,
                calls=((claim.expression, ""),),
                folder=folder,
            )
            for folder in (_RIGHT, REVIEWED, _RIGHT)
            for claim in claims
        ]

    def _files(self) -> dict[str, bytes]:
        """Both versions of the package, each in a folder of its own."""
        package, files = f"{self.hidden.package}/" if self.hidden.package else "", {}
        for path, data in self.files.items():
            top, _, rest = path.partition("/")
            files[f"{REVIEWED}/{package}{rest}" if top == REVIEWED else f"{_RIGHT}/{path}"] = data
        return files


def _is_wrong(right: str, reviewed: str, again: str) -> bool:
    """Whether a call gives another value than it should. One whose right value is another each time, or no literal,
    tells nothing."""
    values = [text for text in (right, reviewed) if not text.startswith(RAISES)]
    return right == again and not is_same(right, reviewed) and all(map(is_readable, values))


def _claims(data: bytes, functions: set[str]) -> list[_NamedDefect]:
    """What a review names; nothing where it says that there is nothing.

    Raises:
        FormError: it is no review.
    """
    if not data or len(data) > LARGEST:
        raise FormError(f"{REVIEW} {'is too long' if data else 'is not there'}")
    lines = [line.strip() for line in data.decode(errors="replace").splitlines() if line.strip()]
    if lines == [CLEAN]:
        return []
    claims = list(_each(lines, functions))
    if not claims or len(claims) > MOST:
        raise FormError(f"it names {len(claims)} defects; at most {MOST} count, and {CLEAN!r} stands alone")
    return claims


def _each(lines: Sequence[str], functions: set[str]) -> Iterator[_NamedDefect]:
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise FormError(f"line {number} is not FILE.py:LINE: CALL")
        function, expression = called(match[3], number, functions)
        yield _NamedDefect(match[1], int(match[2]), function, expression)
