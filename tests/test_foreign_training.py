"""Attempts of others are trained on by a flag alone, and only with token ids that the trained model reads as the text
that stands beside them; else nothing is written, and one line names both."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from agent0.assembly.runtime.providers import providers
from agent0.assembly.trajectories import foreign_training
from agent0.settings.roles import StudentConfig
from tests.kept_open import attached
from tests.pasts import events_of, keep, settings_at, tell
from tests.terminal import agent0 as call
from tests.test_interchange import imported, rows_file

ACTOR = StudentConfig(provider="tiny")
QUESTIONS = ("What is 2+2?", "What is 2+3?")


def folder() -> Path:
    of = providers()["tiny"].folder
    assert of is not None
    return of(ACTOR)


def ids(text: str) -> list[int]:
    return list(Tokenizer.from_file(str(folder() / "tokenizer.json")).encode(text, add_special_tokens=False).ids)


def trace(question: str, answer: str, reward: float, number: int) -> dict[str, Any]:
    text = f"It is \\boxed{{{answer}}}."
    prompt, written = ids(question), ids(text)
    return {
        "version": 1, "id": f"{question}{number}", "task": {"type": "t", "key": question, "data": {}},
        "nodes": [
            {"message": {"role": "user", "content": question}, "token_ids": prompt, "mask": [False] * len(prompt)},
            {"parent": 0, "sampled": True, "message": {"role": "assistant", "content": text}, "token_ids": written,
             "mask": [True] * len(written), "logprobs": [-0.25] * len(written)},
        ],
        "rewards": {"right": {"score": reward}},
    }  # fmt: skip


def traces() -> list[dict[str, Any]]:
    return [trace(question, f"{n % 2}", float(n % 2), n) for question in QUESTIONS for n in range(4)]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with a run of ours, whose server stands."""
    path = tmp_path_factory.mktemp("foreign")
    keep(path, *tell())
    with attached(path):
        yield path


def without_ids(row: dict[str, Any]) -> None:
    for node in row["nodes"]:
        node |= {"token_ids": [], "mask": [], "logprobs": []}


def of_another(row: dict[str, Any]) -> None:
    row["nodes"][1]["token_ids"] = [token + 1 for token in row["nodes"][1]["token_ids"]]


def beyond(row: dict[str, Any]) -> None:
    node = row["nodes"][1]
    node |= {name: [*node[name], value] for name, value in (("token_ids", 10**9), ("mask", True), ("logprobs", -1.0))}


def half_of_another(row: dict[str, Any]) -> None:
    again = {**row["nodes"][1], "parent": 1}
    row["nodes"].append(again | {"message": {"role": "assistant", "content": "It is something else."}})


def improbable(row: dict[str, Any]) -> None:
    row["nodes"][1]["logprobs"][0] = 0.5


def without_text(row: dict[str, Any]) -> None:
    row["nodes"][1]["message"]["content"] = ""


def with_an_example(row: dict[str, Any]) -> None:
    """Put a worked example, which was not sampled, before the question."""
    shown = [("user", "What is 1+1?"), ("assistant", "It is \\boxed{2}.")]
    first = [
        {"parent": n - 1 if n else None, "message": {"role": role, "content": text}, "token_ids": ids(text),
         "mask": [False] * len(ids(text))}
        for n, (role, text) in enumerate(shown)
    ]  # fmt: skip
    row["nodes"] = [*first, *({**node, "parent": n + 1} for n, node in enumerate(row["nodes"]))]


UNFIT: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "no ids": (without_ids, "None of its 8 attempts has token ids: the file has no token ids"),
    "another tokenizer": (of_another, "are not its text in the tokenizer of tiny"),
    "a turn of another tokenizer": (half_of_another, "are not its text in the tokenizer of tiny"),
    "an id beyond the vocabulary": (beyond, "are not its text in the tokenizer of tiny"),
    "a probability above one": (improbable, "has the log-probability 0.5"),
    "no text beside them": (without_text, "are not its text in the tokenizer of tiny"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_what_is_not_in_the_models_own_tokens_is_refused_in_one_line(kept: Path, tmp_path: Path, name: str) -> None:
    change, why = UNFIT[name]
    rows = traces()
    for row in rows:
        change(row)
    run = imported(kept, rows_file(tmp_path / "theirs.jsonl", *rows))["run"]
    answer = call("experiment", "retrain", run, "--name", "unfit", "--imported", "tiny", "--no-evaluate", home=kept)
    assert answer.code == 1 and why in answer.err and "theirs.jsonl" in answer.err, answer.err
    assert len(answer.err.strip().splitlines()) == 1 and not events_of(settings_at(kept), "exp-unfit")


def test_it_is_asked_for_by_a_flag_and_by_nothing_else(kept: Path, tmp_path: Path) -> None:
    run = imported(kept, rows_file(tmp_path / "fit.jsonl", *traces()))["run"]
    for words, code, why in (
        ((run,), 1, "Add: --imported PROFILE"),
        ((run, "--imported", "scripted"), 2, "scripted has no tokenizer"),
        ((run, "--imported", "tiny", "--roles", "student,teacher"), 2, "has no teacher"),
        (("r1", "--imported", "tiny"), 2, "was not imported"),
    ):
        answer = call("experiment", "retrain", *words, "--name", "asked", "--no-evaluate", home=kept)
        assert answer.code == code and why in answer.err, answer.err
    assert not events_of(settings_at(kept), "exp-asked")


def test_all_of_a_file_in_the_models_tokens_is_trained_on(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_training, "_folder", lambda _: folder())
    rows = traces()
    without_ids(rows[0])
    with_an_example(rows[-1])
    run = imported(kept, rows_file(tmp_path / "some.jsonl", *rows))["run"]
    words = ("experiment", "retrain", run, "--name", "fit", "--imported", "scripted", "--no-evaluate", "--json")
    answer = call(*words, home=kept)
    assert answer.code == 0, answer.err
    (checkpoint,) = answer.json["checkpoints"]
    assert checkpoint["checkpoint"] == "student-0" and checkpoint["adapter"] and checkpoint["samples"] == 7
    assert call(*words, home=kept).json == answer.json
    types = [stored.type for stored in events_of(settings_at(kept), run)]
    assert "CheckpointTrained" not in types and json.dumps(types).count("TaskAttempted") == len(rows)
