"""Solutions of GSM8K that people wrote, as programs in the form that a student is asked for: supervised learning, the
ceiling that a verifier's verdicts are compared with.

``python -m studies.human_programs ROWS > programs.jsonl`` makes a trace of verifiers of each row of train
whose steps compute its answer: a step's sentence is a comment, what it computes a line. Train on them by
``agent0 trajectory import programs.jsonl`` and ``agent0 experiment retrain RUN --imported qwen``.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from agent0.assembly.runtime.providers import provider_of
from agent0.config.loading import load
from agent0.events.values import Task, Turn
from agent0.infra.engine.chat_template import Chat, chat_of
from agent0.rollout.student import begin, student_prompt
from agent0.rollout.tool_prompts import delivered
from agent0.settings import StudentConfig

STEP = re.compile(r"<<([-+*/(). 0-9]+)=([-+.0-9]+)>>")
"""What a step computes, and its value."""
FORM = {"run.student.prompts": "programs", "run.student.program_answers": "true", "run.student.max_calls": "1"}


def program_of(solution: str) -> str | None:
    """The steps of ``solution`` as a program that prints the value of its last; None where a step has nothing that
    computes, or the last is not the answer."""
    sentences, _, answer = solution.partition("\n#### ")
    lines, names = list[str](), dict[str, str]()
    for number, sentence in enumerate(sentences.splitlines(), 1):
        computed = STEP.findall(sentence)
        if not computed:
            return None
        lines.append(f"# {STEP.sub('', sentence).strip()}")
        for part, (expression, value) in enumerate(computed, 1):
            name = f"step_{number}" if len(computed) == 1 else f"step_{number}_{part}"
            lines.append(f"{name} = {_with_names(expression, names)}")
            names[value] = name
    if not names or not _same(value, answer):
        return None
    return "\n".join([*lines, f"print({name})"])


def _with_names(expression: str, names: Mapping[str, str]) -> str:
    """``expression`` with values of earlier steps by name."""
    return re.sub(r"\d*\.?\d+", lambda number: names.get(number[0], number[0]), expression.strip())


def _same(value: str, answer: str) -> bool:
    try:
        return Fraction(value) == Fraction(answer.replace(",", "").strip())
    except ValueError:
        return False


def trace(row: Mapping[str, Any], program: str, config: StudentConfig, chat: Chat) -> dict[str, Any]:
    """A trace of verifiers: the student's prompt for ``row`` with ``program`` as its reply, and both as token ids."""
    question, text = str(row["question"]), f"```python\n{program}\n```"
    task = Task(question=question, domain="math", family="open", level=1, canonical=question)
    turns = delivered(begin(task, student_prompt(config, "math"), config).transcript, config.form)
    ids, mask = chat.training_example([*turns, Turn(role="assistant", content=text)])
    start = len(chat.prompt(turns))
    nodes: list[dict[str, Any]] = [
        {"message": {"role": turn.role, "content": turn.content}, "parent": number - 1 if number else None}
        for number, turn in enumerate(turns)
    ]
    marks = [at >= start and bool(learned) for at, learned in enumerate(mask)]
    own = {"token_ids": ids, "mask": marks, "logprobs": [0.0] * sum(marks), "sampled": True}
    nodes.append({"message": {"role": "assistant", "content": text}, "parent": len(turns) - 1, **own})
    return {
        "version": 1,
        "task": {"type": "gsm8k", "key": row["id"], "data": {"prompt": question, "answer": row["answer"]}},
        "nodes": nodes,
        "rewards": {"human": {"score": 1.0}},
    }


def traces(rows: Path, config: StudentConfig, limit: int | None) -> Iterator[dict[str, Any]]:
    """A trace of each of the first ``limit`` rows in the file ``rows`` that can be a program."""
    folder_of = provider_of(config).folder
    assert folder_of is not None
    chat = chat_of(folder_of(config))
    for line in rows.read_text().splitlines()[:limit]:
        row = json.loads(line)
        if program := program_of(row["solution"]):
            yield trace(row, program, config, chat)


def main() -> None:
    """Read the arguments, write a line a row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--profile", default="qwen")
    parser.add_argument("--limit", type=int)
    arguments = parser.parse_args()
    config = load(profile=arguments.profile, overrides=FORM).run.student
    documents = [*traces(arguments.rows, config, arguments.limit)]
    print(*map(json.dumps, documents), sep="\n")
    print(f"{len(documents)} rows of {arguments.rows.name} are programs.", file=sys.stderr)


if __name__ == "__main__":
    main()
