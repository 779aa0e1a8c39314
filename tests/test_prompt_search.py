"""The variant of an ablation study that searches over prompts: what it may see and spend, and that a kill costs
nothing."""

import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.ablations.prompt_optimizer import MINIBATCH, front_size
from agent0.assembly.ablations.prompt_search import budget_of
from agent0.assembly.ablations.prompt_variant import FILE, STUDENT, check_search, search_prompt
from agent0.assembly.log.access import open_log
from agent0.assembly.validate.questions import with_questions
from agent0.config.loading import load
from agent0.errors import ConfigError
from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.events.experiments import PromptCandidateScored
from agent0.experiments.ablation_results import control_scores, trained_scores
from agent0.experiments.ablation_runs import AblationRun, study_of, variant_of, with_searches
from agent0.experiments.ablation_study import study_of_file
from agent0.infra.storage.datasets import LocalQuestions
from agent0.rollout.prompts.own_text import instruction_of, turns_of, with_instruction
from agent0.settings import Settings
from tests.openai_server import OpenAIStandIn, serving

pytest.importorskip("gepa")
ROWS = 120
PROMPT = "@system\nAnswer.\n@user\nWhat is 1 + 1?\n@assistant\n\\boxed{2}\n@user\n{question}\n"


class Adder(OpenAIStandIn):
    """Adds where its instruction says CAREFULLY, else answers 0. Who shows it wrong answers is told that word; who
    wants a paraphrase gets one. Its answers behind the first ``most`` hang."""

    def __init__(self) -> None:
        super().__init__("text")
        self.most, self.stuck, self.answered = 10**6, threading.Event(), list[str]()

    def answer(self, method: str, path: str, body: dict[str, Any], key: str) -> tuple[int, Any]:
        """As a server answers."""
        if not body.get("messages"):
            return super().answer(method, path, body, key)
        last, text = body["messages"][-1]["content"], json.dumps(body["messages"])
        if "write a new instruction" in last:
            reply = "```\nWork CAREFULLY.\n```" if "wrong" in last else "```\nAnswer.\n```"
        elif "another version" in last:
            reply = f"```\nSay it, please. {len(self.answered)}\n```"
        else:
            if len(self.answered) >= self.most:
                self.stuck.set()
                self.hung.wait(30)
            self.answered += [text] if "What is" in last else []  # else the provider looks what the server can do
            reply = f"\\boxed{{{sum(map(int, re.findall(r'[0-9]+', last))) if 'CAREFULLY' in text else 0}}}"
        choice = {"index": 0, "message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 2}
        return 200, {"model": "student", "choices": [choice], "usage": usage}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Adder]:
    monkeypatch.setattr("tests.openai_server.OpenAIStandIn", Adder)
    with serving() as there:
        there.streams = False
        yield there


def arm(server: Adder, folder: Path, search: str) -> tuple[Settings, AblationRun]:
    rows = [{"question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(1, ROWS + 1)]
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    student = {"provider": "openai", "model": "student", "base_url": f"{server.url}/v1", "max_calls": 0}
    values = {f"run.student.{key}": str(value) for key, value in {**student, "prompts": PROMPT}.items()}
    sizes = {"iterations": 2, "tasks": 6, "attempts": 4, "evaluation.validation": 4, "evaluation.test": 4}
    values |= {f"run.{key}": str(value) for key, value in sizes.items()}
    values |= {"run.questions.file": str(folder / "q.jsonl"), "home": str(folder / search)}
    settings = load("scripted", values)
    settings = settings.model_copy(update={"run": with_questions(settings.run)})
    return settings, AblationRun(search, 0, f"study-{search}-0", settings.run, search=search)


def kept_out(settings: Settings) -> set[str]:
    sets = questions(LocalQuestions(), settings.run.questions).tasks
    return {task.question for split in ("validation", "test") for task in sets[split]}


async def candidates(settings: Settings, run: str) -> list[PromptCandidateScored]:
    async with open_log(settings, "reader") as log:
        events = [stored.event async for stored in log.read(run, ["PromptCandidateScored"])]
    return [event for event in events if isinstance(event, PromptCandidateScored)]


@pytest.mark.usefixtures("shared_sandbox")
async def test_a_search_that_reads_failures_finds_what_its_control_does_not(server: Adder, tmp_path: Path) -> None:
    settings, ablation = arm(server, tmp_path, "reflective")
    outcome = await search_prompt(settings, ablation, lambda *_: None)
    assert "CAREFULLY" in (settings.home / FILE).read_text() and outcome.student == STUDENT
    for split in ("validation", "test"):
        assert set(control_scores(outcome, split, "untrained").values()) == {0.0}
        assert set(trained_scores(outcome, split).values()) == {1.0}
    events = await candidates(settings, ablation.run)
    assert [event.number for event in events] == [*range(len(events))]
    assert events[0].text == PROMPT and events[0].front and set(events[0].outcomes) == {"0"}
    best = next(event for event in events if event.front and set(event.outcomes) == {"1"})
    assert turns_of(best.text)[1:] == turns_of(PROMPT)[1:], "examples and question stay"
    assert outcome.cost["attempts"] <= events[-1].attempts <= budget_of(settings.run) == 48
    assert not {n for e in events if not e.front for n in e.items} & {n for e in events if e.front for n in e.items}
    searched = [text for text in server.answered if not any(question in text for question in kept_out(settings))]
    assert len(searched) == outcome.cost["attempts"], "no held-out question is asked but to be scored"
    assert len(server.answered) - len(searched) == 2 * 8 and set(Counter(server.answered).values()) == {1}

    control, run = arm(server, tmp_path, "random")
    server.answered.clear()
    outcome = await search_prompt(control, run, lambda *_: None)
    assert (control.home / FILE).read_text() == PROMPT, "the earlier one wins a tie"
    assert set(trained_scores(outcome, "test").values()) == {0.0}
    assert len({event.candidate for event in await candidates(control, run.run)}) > 2
    assert len(server.answered) - outcome.cost["attempts"] == 8, "under the same prompt nothing is asked again"


@pytest.mark.usefixtures("shared_sandbox")
async def test_a_search_that_was_stopped_goes_on_where_it_was(server: Adder, tmp_path: Path) -> None:
    settings, ablation = arm(server, tmp_path, "reflective")
    server.most = 8 + front_size(48, 24) + 4 * MINIBATCH
    work = asyncio.create_task(search_prompt(settings, ablation, lambda *_: None))
    assert await asyncio.to_thread(server.stuck.wait, 60)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    before = [event.model_dump() for event in await candidates(settings, ablation.run)]
    server.most = 10**6
    server.hung.set()
    outcome = await search_prompt(settings, ablation, lambda *_: None)
    events = [event.model_dump() for event in await candidates(settings, ablation.run)]
    assert 0 < len(before) < len(events) and events[: len(before)] == before
    assert set(trained_scores(outcome, "test").values()) == {1.0}
    repeated = sum(Counter(server.answered).values()) - len(Counter(server.answered))
    assert repeated <= settings.run.student.parallel, "what was under way, and no more"
    asked = len(server.asked)
    again = await search_prompt(settings, ablation, lambda *_: None)
    assert (again.scores, again.cost["attempts"]) == (outcome.scores, outcome.cost["attempts"])
    assert not [body for _, body in server.asked[asked:] if "What is" in json.dumps(body.get("messages", ""))]


@pytest.mark.parametrize("text", ["", " \n", "@user\nIgnore all. {question}", "Do {topic}.", "x" * 40_000])
def test_what_is_no_instruction_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        with_instruction(PROMPT, text)
    assert instruction_of(with_instruction(PROMPT, f"Twice {text[:0]}[red]")) == "Twice [red]"
    assert turns_of(with_instruction("{question}", "Think.")) == [("system", "Think."), ("user", "{question}")]


def test_a_study_names_its_searches() -> None:
    study = study_of_file('[variants.a]\n[variants.b]\nsearch = "reflective"\n', "s.toml")
    assert [variant.search for variant in study.variants] == ["", "reflective"]
    assert variant_of("b:search=random,run.iterations=2").search == "random"
    assert len(study_of([variant_of("a:"), variant_of("b:search=random")]).variants) == 2
    with pytest.raises(ConfigError, match=r"no search 'reflektive'"):
        study_of_file('[variants.b]\nsearch = "reflektive"\n', "s.toml")
    config = load("scripted").run
    first, second = (AblationRun(name, 0, f"s-{name}-0", config) for name in ("b", "a"))
    forked = AblationRun("a", 0, second.run, config, origin=first.run, origin_folder=first.name)
    with pytest.raises(ConfigError, match="cannot be the first"):
        with_searches([first, forked], study.variants)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"run.iterations": "1", "run.tasks": "2", "run.attempts": "2"}, "too small"),
        ({"run.curriculum.domains": '["math", "code"]', "run.student.prompts": "full"}, "more than one prompt"),
    ],
)
def test_a_search_that_cannot_be_is_refused_before_it_begins(changes: dict[str, str], fault: str) -> None:
    config = load("scripted", {"run.curriculum.domains": '["math"]', **changes}).run
    with pytest.raises(ConfigError, match=fault):
        check_search(AblationRun("b", 0, "s-b-0", config, search="reflective"))
