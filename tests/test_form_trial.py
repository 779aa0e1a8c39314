"""A model's form of calls is the one that it writes, not only the one that its chat template teaches."""

from dataclasses import dataclass, field
from pathlib import Path
from shutil import copy
from types import SimpleNamespace
from typing import Any

import pytest

from agent0.assembly.runtime.execution import fitted_begin
from agent0.assembly.runtime.stamping import recorded
from agent0.assembly.validate.call_forms import with_tool_form
from agent0.chat_format import format_call
from agent0.events.runs import RunPaused, RunStarted
from agent0.ports.models import GenerateRequest, Generation
from agent0.rollout.form_trial import PROBES, tried_form
from agent0.settings import RunConfig, StudentConfig

TEMPLATE = Path(__file__).parent / "data" / "templates" / "qwen2.5.jinja"
CALL, BLOCK = format_call("python", {"code": "print(1)"}), "```python\nprint(1)\n```"
STUDENT = StudentConfig(provider="transformers", model="a")


@dataclass
class Habit:
    """A model with one habit for each way that it is told of tools."""

    template: str
    fence: str
    asked: list[GenerateRequest] = field(default_factory=list)
    name: str = "habit"

    async def generate(self, request: GenerateRequest) -> Generation:
        self.asked.append(request)
        return Generation(f"I compute.\n{self.template if request.tools else self.fence}")

    async def close(self) -> None:
        pass


@dataclass
class Opened:
    model: Any

    def open(self, _: object) -> Any:
        return self.model


@dataclass
class Notices:
    """An observer that remembers what it was told."""

    texts: list[str] = field(default_factory=list)

    def say(self, text: str, *, warning: bool = False) -> None:
        self.texts.append(text)

    async def follow(self, log: object, run: str) -> Any:
        raise AssertionError


def app(model: Any) -> Any:
    return SimpleNamespace(ports={"models": Opened(model)})


@pytest.mark.parametrize(
    ("template", "fence", "form", "requests"),
    [
        (CALL, BLOCK, "template", 5),
        ('{"name": "python", "arguments": {"code": "1"}}', BLOCK, "template", 5),
        ("I compute the product.", BLOCK, "fence", 10),
        (format_call("calculator", {"x": 1}), BLOCK, "fence", 10),
        ("<tool_call>\nprint(1)\n</tool_call>", BLOCK, "fence", 10),
        (BLOCK, BLOCK, "fence", 10),
        ("It is 5.", "It is 5.", "template", 10),
    ],
)
async def test_the_form_that_a_model_writes_is_taken(template: str, fence: str, form: str, requests: int) -> None:
    model = Habit(template, fence)
    trial = await tried_form(model, STUDENT)
    assert trial.form == form and len(model.asked) == requests
    assert str(trial).endswith(f"run.student.tool_form is {form}.") and f"of {len(PROBES)} in form template" in str(
        trial
    )
    assert all(request.sampling.temperature == 0 and request.sampling.max_tokens <= 256 for request in model.asked)


def folder(path: Path) -> str:
    copy(TEMPLATE, path / "chat_template.jinja")
    return str(path)


async def test_a_run_begins_with_the_form_that_was_tried(tmp_path: Path) -> None:
    student = STUDENT.model_copy(update={"model": folder(tmp_path)})
    run = RunConfig(student=student)
    config, digest = run.to_record()
    event = RunStarted(name="r", profile="p", seed=0, config=config, config_sha=digest)
    notices = Notices()
    begin = await fitted_begin(app(Habit("no call", BLOCK)), recorded("r", event), notices)
    assert begin is not None and isinstance(begin.event, RunStarted)
    assert "0 of 5 in form template, 5 of 5 in form fence" in notices.texts.pop()
    settled = RunConfig.recorded(begin.event.config)
    assert settled.student.tool_form == "fence" and settled.to_record() == (begin.event.config, begin.event.config_sha)
    again = await fitted_begin(app(None), begin, notices)
    assert (again, notices.texts) == (begin, []), "what is settled is not tried again"


@pytest.mark.parametrize(
    "student",
    [
        StudentConfig(),
        StudentConfig(provider="tiny"),
        StudentConfig(provider="openai", model="gpt", base_url="http://127.0.0.1:1/v1"),
        STUDENT.model_copy(update={"tool_form": "actions"}),
        STUDENT.model_copy(update={"max_calls": 0}),
        STUDENT.model_copy(update={"tools": ()}),
    ],
)
async def test_nothing_is_tried_where_the_form_is_settled_or_no_template_is_at_hand(
    student: StudentConfig, tmp_path: Path
) -> None:
    if student.provider == "transformers":
        student = student.model_copy(update={"model": folder(tmp_path)})
    assert await with_tool_form(student, Opened(None)) == (student, "")
    begin = recorded("r", RunPaused(reason="x"))
    assert await fitted_begin(app(None), begin, Notices()) == begin
