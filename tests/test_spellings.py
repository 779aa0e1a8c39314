"""A teacher's reply is read where it holds one task, refused where it holds none or two, and never read as another."""

from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.events.tasks import TaskProposed
from agent0.ports.models import GenerateRequest, Generation
from agent0.rollout.prompts import prompt
from agent0.rollout.proposals import LONGEST
from agent0.rollout.teacher import LONGEST_KEPT, Draft, propose, read_proposal
from agent0.settings import ActorConfig
from tests.spellings import OTHER, STYLES, Fields, raw, spelled, spellings

PIECES = (
    '{"', '{"a":', '{"question": ', "[{", "```\n", "~~~x\n", "<question>", "</question>", "<think>", "Question:\n",
    "question: |\n ", "\u201c", '"', "{/*", "{#\n", "\\", "{a:", "[", "  ", "\t\n", "> ", "**", "'''", "a: ", "`",
    '{"question": "x", "program": "y"}, ', '{"arguments": "{', "}", "]", "</think>", "7", ",", "\ud800",
)  # fmt: skip


@pytest.mark.parametrize("style", [style.__name__ for style in STYLES])
def test_what_is_unambiguous_is_read_and_the_rest_is_refused(style: str) -> None:
    for name, text, fields in spellings():
        if name == style:
            proposal, problem = read_proposal(text, "math", "arithmetic", 3)
            found: Fields | None = None
            if proposal:
                found = {"question": proposal.question, "program": proposal.program} | proposal.params
            assert found == fields, f"{problem}\n{text}"
            assert bool(problem) == (proposal is None)


def test_there_are_200_spellings_of_ten_styles() -> None:
    made = spellings()
    assert len({name for name, *_ in made}) >= 10 and len(made) >= 200
    assert sum(fields is None for *_, fields in made) >= 100 <= sum(fields is not None for *_, fields in made)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.booleans())
def test_any_pieces_are_read_or_have_a_problem(text: str, unchecked: bool) -> None:
    proposal, problem = read_proposal(text, "math", "arithmetic", 1, unchecked)
    assert (proposal is None) == bool(problem) and len(problem) < 200
    if proposal:
        assert type(proposal).model_validate_json(proposal.model_dump_json()) == proposal


@pytest.mark.timeout(20)
def test_repeated_openings_end() -> None:
    """They are what makes scanners quadratic or worse."""
    for piece in PIECES:
        proposal, _ = read_proposal(piece * (LONGEST // len(piece)), "math", "arithmetic", 1)
        assert proposal is None or (proposal.question, proposal.program) == ("x", "y")


@dataclass
class Says:
    """A model that says one thing."""

    text: str
    finish: Literal["stop", "length"] = "stop"
    name: str = "says"

    async def generate(self, request: GenerateRequest) -> Generation:
        """The same to every request."""
        return Generation(self.text, finish=self.finish)

    async def close(self) -> None:
        """Nothing to close."""


async def proposed(model: Says, family: str = "linear") -> Draft:
    words, config = prompt("full", "math", "teacher"), ActorConfig(max_tokens=64)
    return await propose(model, words, domain="math", family=family, level=2, config=config, seed=1)


async def test_a_free_question_with_a_program_needs_no_family() -> None:
    drafts = [await proposed(Says(spelled(OTHER)), family) for family in ("open", "linear")]
    assert drafts[0].proposal == drafts[1].proposal and drafts[0].proposal
    assert (drafts[0].proposal.family, drafts[0].proposal.program) == ("open", OTHER["program"])
    assert not (await proposed(Says(OTHER["question"]), "open")).proposal


@pytest.mark.parametrize("text", ["What is 12 + 34", spelled(OTHER)])
async def test_a_reply_that_was_cut_off_is_no_task(text: str) -> None:
    """Nobody knows what was to follow: another digit, another task."""
    draft = await proposed(Says(text, "length"))
    assert (draft.proposal, draft.text) == (None, text) and "cut off at 64 tokens" in draft.problem
    assert (await proposed(Says(spelled(OTHER)))).proposal


@pytest.mark.parametrize("filler", ["x", "{", "\ud800", "\U0001f600"])
async def test_a_reply_of_a_megabyte_is_recorded_in_part(filler: str) -> None:
    draft = await proposed(Says("begin " + filler * 1_000_000 + " end"))
    assert draft.proposal is None and draft.problem
    assert draft.text.startswith("begin ") and draft.text.endswith(" end")
    assert f"[{1_000_010 - LONGEST_KEPT} characters left out]" in draft.text
    event = TaskProposed(
        task="t", iteration=0, slot=0, teacher="base", text=draft.text, proposal=None, problem=draft.problem, prompt="p"
    )
    assert len(event.model_dump_json().encode()) < 200_000


@pytest.mark.parametrize("program", ["print(", "print(‘5’)", "(" * 7000, "-" * 7000 + "1", "The answer is 7."])  # noqa: RUF001
def test_what_is_no_python_is_no_program(program: str) -> None:
    proposal, problem = read_proposal(spelled({**OTHER, "program": program}, write=raw), "math", "arithmetic", 1)
    assert proposal is None and problem == "the program is no Python"
