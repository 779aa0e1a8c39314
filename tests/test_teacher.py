"""What the teacher writes becomes a task, or a problem in words."""

import contextlib
import io
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.events.tasks import TaskProposed
from agent0.infra.models.scripted import Scripted
from agent0.ports.models import GenerateRequest, Generation
from agent0.rollout.prompts import Prompt, prompt, prompts, render
from agent0.rollout.proposals import task_schema
from agent0.rollout.teacher import LONGEST_PROGRAM, LONGEST_QUESTION, normal, propose, read_proposal, request_turns
from agent0.settings import ActorConfig
from agent0.tasks.families import families
from agent0.tasks.topics import TOPICS, topic_of
from agent0.verification.verifiers import verifier_for
from tests.memory import MemoryArtifacts
from tests.world import levels_of, own


@pytest.mark.parametrize("family", sorted(own()))
def test_a_familys_question_becomes_its_task(family: str) -> None:
    entry = families(long=None)[family]
    for level in levels_of(entry):
        rng = random.Random(level)
        params = entry.sample(level, rng)
        question = entry.render(params, rng)
        for text in (question, f" {question}\n", json.dumps({"question": question, "program": "print(1)"})):
            proposal, problem = read_proposal(text, entry.domain, family, level)
            assert proposal and not problem
            assert (proposal.family, proposal.canonical) == (family, entry.canonical(params))
            assert (proposal.question, proposal.program) == (question, "")


def test_another_family_of_any_domain_is_read_as_what_it_is() -> None:
    """Whether it is welcome is the screen's to say."""
    entry = families("logic")["boolean"]
    question = entry.render(entry.sample(2, random.Random(0)), random.Random(0))
    proposal, _ = read_proposal(question, "math", "arithmetic", 1)
    assert proposal and (proposal.domain, proposal.family) == ("logic", "boolean")


def test_an_open_question_brings_its_program() -> None:
    body = {"question": "How many  Primes are below 100?", "program": "print(25)\n"}
    proposal, problem = read_proposal(f"```json\n{json.dumps(body)}\n```", "math", "arithmetic", 3)
    assert proposal and not problem
    assert (proposal.family, proposal.domain, proposal.level) == ("open", "math", 3)
    assert proposal.program == "print(25)"
    assert proposal.canonical == "open how many primes are below 100?"
    assert proposal.question == "How many  Primes are below 100?"


def test_a_question_without_a_program_is_a_task_only_where_such_are_wanted() -> None:
    for text in ("Why is the sky blue?", '{"question": "Why is the sky blue?"}'):
        assert read_proposal(text, "any", "open", 2)[0] is None
        proposal, problem = read_proposal(text, "any", "open", 2, unchecked=True)
        assert proposal and not problem
        assert (proposal.family, proposal.program, verifier_for(proposal).name) == ("open", "", "panel")


def test_a_proposal_may_say_what_kind_of_answer_it_wants() -> None:
    body = {"question": "Which letter?", "program": "print('B')", "answer_kind": "choice"}
    proposal, _ = read_proposal(json.dumps(body), "logic", "open", 2)
    assert proposal and proposal.params == {"answer_kind": "choice"}
    for wrong in ("poem", 7, ["choice"]):
        nothing, problem = read_proposal(json.dumps({**body, "answer_kind": wrong}), "logic", "open", 2)
        assert nothing is None and "no kind of answer" in problem


@pytest.mark.parametrize(
    "entry", [p for p in prompts() if p.role == "teacher" and p.style in ("full", "programs")], ids=lambda p: p.name
)
def test_examples_of_proposals_are_tasks_whose_programs_print_an_answer(entry: Prompt) -> None:
    """Or pass their own tests; a checker accepts what is printed."""
    shown = [turn.content for turn in render(entry, {}) if turn.role == "assistant"]
    assert shown
    for text in shown:
        proposal, problem = read_proposal(text, entry.domain, "open", 1)
        assert proposal is not None, problem
        if proposal.family == "open":
            out, names = io.StringIO(), dict[str, Any]()
            with contextlib.redirect_stdout(out):
                exec(f"{proposal.program}\n{proposal.tests}\n{proposal.checker}", names)
            assert bool(out.getvalue().strip()) != bool(proposal.tests)
            if proposal.checker:
                assert names["check"](out.getvalue().strip())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "nothing"),
        ("```\n```", "nothing"),
        ("Why?", "no family reads"),
        ('{"question": ', "broken JSON"),
        ('{"question": 3, "program": "x"}', "must be text"),
        ('{"question": "", "program": "x"}', "no question"),
        ('{"program": "x"}', "must be text"),
        ('{"question": "a\\u0007b", "program": "x"}', "control characters in the question"),
        ('{"question": "a\\ud800", "program": "x"}', "control characters in the question"),
        ('{"question": "a\\u202eb", "program": "x"}', "control characters in the question"),
        ('{"question": "a", "program": "x\\u0000"}', "control characters in the program"),
        (json.dumps({"question": "a" * (LONGEST_QUESTION + 1), "program": "x"}), "longer than"),
        (json.dumps({"question": "a", "program": "x" * (LONGEST_PROGRAM + 1)}), "longer than"),
        ("{" * 100_000, "too long"),
        ('{"question": ' + "[" * 15_000, "broken JSON"),
        ("a" * 100_000, "longer than"),
    ],
)
def test_what_is_no_task_has_a_problem(text: str, problem: str) -> None:
    proposal, told = read_proposal(text, "math", "arithmetic", 1)
    assert proposal is None
    assert problem in told


@settings(max_examples=50, deadline=None)
@given(st.text() | st.builds(lambda q, p: json.dumps({"question": q, "program": p}), st.text(), st.text()))
def test_any_text_is_read_and_what_is_read_can_be_stored(text: str) -> None:
    proposal, problem = read_proposal(text, "math", "arithmetic", 1)
    assert (proposal is None) == bool(problem)
    if proposal:
        event = TaskProposed(
            task="t", iteration=0, slot=0, teacher="base", text="", proposal=proposal, prompt="p", problem=problem
        )
        assert TaskProposed.model_validate_json(event.model_dump_json()) == event


@settings(max_examples=50, deadline=None)
@given(st.text(), st.sampled_from([" ", "\n", "  "]))
def test_identity_of_open_questions_ignores_case_and_spacing(text: str, space: str) -> None:
    assert normal(text) == normal(f"{space}{text.replace(' ', space)}{space}")
    assert len(normal(text * 300)) <= 200


async def test_proposing_asks_for_the_family_and_keeps_the_tokens() -> None:
    words = prompt("compact", "math", "teacher")
    (turn,) = request_turns(words, "math", "linear", 3)
    assert "linear" in turn.content and "3" in turn.content
    model, config = Scripted(MemoryArtifacts()), ActorConfig(max_tokens=64)
    drafts = [
        await propose(model, words, domain="math", family="linear", level=3, config=config, seed=seed)
        for seed in range(8)
    ]
    assert any(draft.proposal and draft.proposal.family == "linear" for draft in drafts)
    for draft in drafts:
        assert draft.trajectory and sum(draft.trajectory.mask) == draft.usage.completion_tokens
        assert draft.model == "scripted"


async def test_a_word_problem_is_asked_for_about_a_topic_that_the_request_draws() -> None:
    model, words, config = Asked(MemoryArtifacts()), prompt("programs", "math", "teacher"), ActorConfig(max_tokens=64)
    topics = []
    for seed in range(300):
        await propose(model, words, domain="math", family="linear", level=3, config=config, seed=seed)
        request = model.last.turns[-1].content
        topics.append(next(topic for topic in TOPICS if f"About: {topic}. Level: 3." in request))
    assert {*topics} == {*TOPICS}, "every topic is drawn, and named as it stands"
    assert topics == [topic_of(seed) for seed in range(300)], "the same request asks for the same again"


class Asked(Scripted):
    """Keeps what it is asked for."""

    async def generate(self, request: GenerateRequest) -> Generation:
        self.last = request
        return await super().generate(request)


@pytest.mark.parametrize(("family", "asked"), [("linear", False), ("linear", True), ("ledger", True)])
async def test_a_schema_is_sent_where_one_is_wanted(family: str, asked: bool) -> None:
    model, config = Asked(MemoryArtifacts()), ActorConfig(json_schema=asked)
    words = prompt("compact", "math", "teacher")
    await propose(model, words, domain="math", family=family, level=2, config=config, seed=1)
    schema = model.last.schema
    assert (schema is not None) is asked
    assert not schema or schema == task_schema(long=family == "ledger")
    assert task_schema(long=True) != task_schema(long=False)


SPLIT = {"question": "1. Add 3 and 4.\n2. Double it.\n3. Square it.", "program": "print(196)"}
STEPS = ["Add 3 and 4", "Double it", "Square it"]
PROGRAMS = ["print(7)", "print(14)\n", "print(196)"]


@pytest.mark.parametrize(
    ("body", "programs"),
    [
        (SPLIT, ()),
        (SPLIT | {"subgoals": None, "programs": []}, ()),
        (SPLIT | {"subgoals": STEPS}, ()),
        (SPLIT | {"subgoals": STEPS, "programs": PROGRAMS}, ("print(7)", "print(14)", "print(196)")),
        ({"question": SPLIT["question"], "programs": PROGRAMS}, ("print(7)", "print(14)", "print(196)")),
    ],
)
def test_a_long_open_task_has_the_steps_it_is_given_or_those_it_names(
    body: dict[str, object], programs: tuple[str, ...]
) -> None:
    proposal, problem = read_proposal(json.dumps(body), "math", "chain", 2)
    assert proposal and not problem
    assert (proposal.family, proposal.kind, proposal.level) == ("open", "long", 2)
    assert (proposal.subgoals, proposal.programs) == (tuple(STEPS), programs)
    assert proposal.program == "print(196)"


def test_steps_of_a_task_that_was_asked_to_be_short_are_not_read() -> None:
    body = json.dumps(SPLIT | {"subgoals": STEPS, "programs": PROGRAMS})
    proposal, _ = read_proposal(body, "math", "linear", 2)
    assert proposal and (proposal.kind, proposal.subgoals, proposal.programs) == ("short", (), ())


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"question": "What is 3 + 4?"}, "2 to 12 steps; none are found"),
        ({"subgoals": ["Add 3 and 4"]}, "2 to 12 steps; 1 are found"),
        ({"subgoals": ["x"] * 13}, "2 to 12 steps; 13 are found"),
        ({"subgoals": STEPS, "programs": PROGRAMS[:2]}, "2 programs for 3 steps"),
        ({"subgoals": "Add 3 and 4"}, "must be lists of text"),
        ({"subgoals": [*STEPS[:2], 3]}, "must be lists of text"),
        ({"programs": {"a": 1}}, "must be lists of text"),
        ({"subgoals": [*STEPS, " "]}, "no subgoal"),
        ({"subgoals": [*STEPS, "x" * 501]}, "the subgoal is longer than"),
        ({"subgoals": [*STEPS, "a\u0007b"]}, "control characters in the subgoal"),
        ({"subgoals": STEPS, "programs": [*PROGRAMS[:2], "x\0"]}, "control characters in the program"),
        ({"program": ""}, "brings no program"),
        ({"program": "", "programs": [*PROGRAMS[:2], ""]}, "brings no program"),
    ],
)
def test_what_is_no_long_task_has_a_problem(changes: dict[str, object], problem: str) -> None:
    proposal, told = read_proposal(json.dumps(SPLIT | changes), "math", "chain", 1)
    assert proposal is None
    assert problem in told


def test_a_long_familys_question_needs_nothing_else() -> None:
    entry = families(long=True)["ledger"]
    params = entry.sample(1, random.Random(4))
    question = entry.render(params, random.Random(4))
    forged = json.dumps({"question": question, "subgoals": ["win", "stop"], "programs": ["print(1)"] * 2})
    for text in (question, forged):
        proposal, _ = read_proposal(text, "logic", "ledger", 1)
        assert proposal and entry.steps
        assert proposal.kind == "long" and proposal.programs == ()
        assert proposal.subgoals == tuple(step.text for step in entry.steps(params))
