"""Each step of reading an answer makes of every labelled pair what it made before: respelled texts, forms, units, keys,
what cannot be read and why; and every kind of answer says the same of pairs that are its own or another's.

``python -m tests.test_reading_steps`` writes what is recorded anew, where a step is meant to change.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from agent0.grading import answer_types, extract, extraction, grade, literals, normal_form, rewriting, spelling
from agent0.grading.answer_types import formula, grade_as, kinds, left_undone, listing, value
from agent0.grading.math import algebra, cleaning, fallback, forms, letters, parser, units
from agent0.grading.rewriting import clocks, congruences, functions, intervals, layout, piecewise
from agent0.grading.spelling import calendar, choices, markup, names, notation, numerals, statements
from agent0.verification.labelled_pairs import read_pairs
from tests.test_same_seed import plain

DATA = Path(__file__).parent / "data"
RECORDED = Path(__file__).parent / "golden" / "reading_steps.json"


@cache
def pairs() -> tuple[tuple[str, str], ...]:
    """(right answer, answer) of every second labelled pair, and of some with the next one's right answer."""
    rows: list[dict[str, Any]] = []
    for name in ("written_pairs", "answer_pairs", "spelled_pairs"):
        rows += read_pairs((DATA / f"{name}.jsonl").read_text(encoding="utf-8"), name)
    own = [(row["gold"], _answer(row)) for row in rows[::2]]
    crossed = [(gold, said) for (gold, _), (_, said) in zip(own[::7], own[1::7], strict=False)]
    return tuple(dict.fromkeys([*own, *crossed]))


def _answer(row: dict[str, Any]) -> str:
    return (extract(row["candidate"]) or "") if row["form"] == "response" else str(row["candidate"])


@cache
def texts() -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for pair in pairs() for text in pair))


def equal(one: str, other: str) -> bool:
    return grade(one, other).correct is True


OF_A_TEXT: tuple[Callable[[str], Any], ...] = (
    literals.is_literal, literals.enclosed, normal_form.normal_form, units.spelt, units.cut_unit, cleaning.clean,
    cleaning.latex_signs, letters.letter_of, forms.fold, answer_types.kind_of, answer_types.words, formula.tokens,
    value.is_number, value.arithmetic_left, functions.computed_functions, clocks.weekday, clocks.monthly, clocks.clock,
    congruences.residues_of, extraction.extract, extraction.visible, calendar.date_of, calendar.time_of,
    choices.choice_of, statements.statement, statements.unknown_to_engine, names.named, names.key_of, names.arguments,
    markup.unmarked, numerals.figures,
)  # fmt: skip
OF_A_PAIR: tuple[Callable[[str, str], Any], ...] = (
    normal_form.same, units.one_unit, fallback.costly, functions.applied, piecewise.named_values,
    piecewise.one_or_other, rewriting.rewritten, rewriting.worded, rewriting.computed, intervals.bounded,
    layout.laid_out, layout.turned_alike, layout.spelled_alike, clocks.timed, clocks.dated, congruences.same_residues,
    congruences.bare_residue, notation.noted, calendar.same_date, calendar.same_time, choices.same_choice,
    spelling.plain, spelling.decided_as_written, spelling.spelled, statements.degrees_for_radians,
    statements.same_statement, numerals.in_figures,
)  # fmt: skip


def _read(text: str) -> str:
    return algebra.key(parser.read(text))


def _form(text: str) -> str:
    return repr(forms.form_of(text))


def _value(text: str) -> str | None:
    found = names.value_of(text)
    return algebra.key(found) if found else None


def _vector(text: str) -> list[str | None]:
    return [notation.vector(text, size, bare=bare) for size in (2, 3) for bare in (False, True)]


def _numbers(text: str) -> list[str]:
    return [notation.numbers(text, excluded) for excluded in (False, True)]


def _cut(text: str) -> list[list[str] | None]:
    return [listing.cut(text, at) for at in (",;", " ")]


def _cases(gold: str, said: str) -> bool | None:
    return piecewise.same_cases(gold, said, equal)


def _resolved(gold: str, said: str) -> tuple[bool, str] | None:
    return rewriting.resolved(gold, said, equal)


def _of_kind(name: str, gold: str, said: str) -> list[Any]:
    return [grade_as(name, gold, said), grade_as(name, gold, said, 2), left_undone(name, gold, said)]


STEPS: dict[str, Callable[..., Any]] = {
    f"{step.__module__.removeprefix('agent0.grading.')} {step.__name__}": step for step in (*OF_A_TEXT, *OF_A_PAIR)
}
OWN: tuple[Callable[..., Any], ...] = (_read, _form, _value, _vector, _numbers, _cut, _cases, _resolved)
STEPS |= {step.__name__.strip("_"): step for step in OWN}
KINDS = {f"kind {name}": partial(_of_kind, name) for name in kinds()}


def made(name: str) -> Iterable[Any]:
    """What the step ``name`` comes to on every text, or on every pair; of what it refuses, why."""
    step = (STEPS | KINDS)[name]
    if step in OF_A_PAIR or step in (_cases, _resolved):
        inputs: Iterable[tuple[str, ...]] = pairs()
    else:
        inputs = pairs()[::4] if name in KINDS else ((text,) for text in texts())
    for given in inputs:
        try:
            yield step(*given)
        except ValueError as error:
            yield f"{type(error).__name__}: {error}"


def digest(name: str) -> str:
    return hashlib.sha256(json.dumps([plain(one) for one in made(name)]).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", [*STEPS, *KINDS])
def test_a_step_makes_of_every_text_what_it_made_before(name: str) -> None:
    assert digest(name) == json.loads(RECORDED.read_text())[name], "python -m tests.test_reading_steps records it anew"


if __name__ == "__main__":
    RECORDED.write_text(json.dumps({name: digest(name) for name in (*STEPS, *KINDS)}, indent=1) + "\n")
