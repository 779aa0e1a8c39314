"""Rows as their publishers lay them out, converted to the fields that a benchmark reads. A row that has those fields
already stays as it is, but for the solution in its gold. Each takes a row, its file's name and its number from 0; and
raises KeyError, TypeError, ValueError or IndexError for what is no such row."""

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from agent0.chat_format import boxed
from agent0.evaluation.benchmarks.rows import Row
from agent0.grading.golds import HASHES, one_answer

Convert = Callable[[Row, str, int], Row]


def as_it_is(row: Row, file: str, number: int) -> Row:
    """Return a row whose published layout is ours."""
    return row


def _text(value: Any) -> Any:
    """Numbers as text, whole ones without decimals; anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return str(int(value)) if float(value).is_integer() else str(value)


def _answer(row: Row, answer: Any) -> Row:
    """``answer`` as the one that it is, and as the solution, where there is no other, with its work."""
    answer = _text(answer)
    if not isinstance(answer, str):
        return {"answer": answer}
    alone = one_answer(answer)
    solution = {} if alone == answer or row.get("solution") else {"solution": answer}
    return {"answer": alone, **solution}


def gsm8k(row: Row, file: str, number: int) -> Row:
    """Convert GSM8K: the answer is what follows the hashes, without commas; without hashes it is a number."""
    fields = _answer(row, row["answer"])
    is_number = re.fullmatch(r"[-$\d,. ]*\d[\d,./% ]*", str(fields["answer"]))
    if isinstance(row["answer"], str) and row["answer"].strip() and not is_number and HASHES not in row["answer"]:
        raise ValueError(f"its answer {row['answer'][:60]!r} is no number and has no {HASHES}")
    if is_number:
        fields = {**fields, "answer": fields["answer"].replace(",", "")}
    return {"id": f"gsm8k/test/{number}", **row, **fields, **_id(row)}


def _id(row: Row) -> dict[str, str]:
    return {"id": str(row["id"])} if row.get("id") not in (None, "") else {}


def math(row: Row, file: str, number: int) -> Row:
    """Convert MATH and MATH-500: the answer is given, or the last box of the solution; a level without a number is left
    out."""
    answer = _given_or_boxed(row)
    if "problem" not in row:
        return {"id": f"math/{number}", **row, **_answer(row, answer)}
    level = str(row.get("level", "")).removeprefix("Level ")
    facts = {"subject": row.get("subject", row.get("type")), "solution": row.get("solution")}
    name = row["unique_id"] if "unique_id" in row else f"test5000/{row['idx']}" if "idx" in row else str(number)
    fields = {"question": row["problem"], **facts, **_answer(row, answer)}
    return {"id": f"math/{name}", **fields, **({"level": int(level)} if level.isdigit() else {})}


def _given_or_boxed(row: Row) -> Any:
    """The answer of a row, or the last box of its solution."""
    if row.get("answer") not in (None, ""):
        return row["answer"]
    if (answer := boxed(row["solution"])) is None:
        raise ValueError("its solution has no closed box")
    return answer


def svamp(row: Row, file: str, number: int) -> Row:
    """Convert SVAMP: story and question become one text, whole numbers are written without decimals."""
    if "Body" not in row:
        return {"id": f"svamp/{number}", **row, **_answer(row, row["answer"])}
    body = row["Body"].strip()
    question = f"{body}{'' if body.endswith(('.', '?', '!')) else '.'} {row['Question'].strip()}"
    name = row.get("idx", row.get("ID", number))
    fields = {"question": question, "answer": _text(float(row["Answer"])), "subject": row.get("Type")}
    return {"id": f"svamp/{name}", **fields}


def aime(row: Row, file: str, number: int) -> Row:
    """Convert AIME: the answer is given, or the last box of the solution."""
    row = {name.lower(): value for name, value in row.items()}
    answer = _answer(row, _given_or_boxed(row))
    if "problem" not in row:
        return {"id": f"aime24/{number}", **row, **answer}
    return {"id": f"aime24/{number}", "question": row["problem"], "answer": answer["answer"]}


def bbh(row: Row, file: str, number: int) -> Row:
    """Convert a task of BIG-Bench-Hard; its file is named for the subset."""
    if "target" not in row:
        return {"id": f"bbh/{_stem(file)}/{number}", **row, **_answer(row, row["answer"])}
    return {"id": f"bbh/{_stem(file)}/{number}", "question": row["input"], "answer": _text(row["target"])}


def _stem(file: str) -> str:
    return PurePosixPath(file).name.partition(".")[0]


_instruction = re.compile(
    r"Please choose the correct \w+ to [\w ]+: (.*?)\n\n(?:Answer|Ending)1: (.*)\n\nAnswer format:", re.DOTALL
)
_next = re.compile(r" (?:Answer|Ending)[2-9]: ")


def arc(row: Row, file: str, number: int) -> Row:
    """Convert ARC, as its authors and two others lay it out: the choices below the question, beside it, or numbered in
    an instruction, where they get letters."""
    if "instruction" in row:
        return _instructed(row, file, number)
    if "answerKey" not in row:
        return row
    question, choices = row["question"], row.get("choices")
    if isinstance(question, Mapping):
        question, choices = question["stem"], question["choices"]
    if not isinstance(choices, Mapping):
        choices = {name: [choice[name] for choice in choices or ()] for name in ("text", "label")}
    fields = {"question": question, "choices": list(choices["text"]), "labels": list(choices["label"])}
    return {"id": str(row.get("id", f"arc/{number}")), **fields, "answer": row["answerKey"]}


def _instructed(row: Row, file: str, number: int) -> Row:
    instruction = _instruction.match(row["instruction"])
    if instruction is None:
        raise ValueError("it is no instruction with answers")
    choices = [choice.strip() for choice in _next.split(instruction[2])]
    labels = list("ABCDEFGH"[: len(choices)])
    answer = labels[int(row["answer"].removeprefix("answer")) - 1]
    name = "arc_challenge" if "challenge" in file.casefold() else "arc_easy"
    fields = {"question": instruction[1].strip(), "choices": choices, "labels": labels, "answer": answer}
    return {"id": f"{name}/test/{number}", **fields}


def hellaswag(row: Row, file: str, number: int) -> Row:
    """Convert HellaSwag: the story so far under its activity; the label may be a number or text."""
    if "endings" not in row:
        return row
    story = f"{row['ctx_a']} {row['ctx_b']}" if "ctx_a" in row else row["ctx"]
    activity, endings = row.get("activity_label"), row["endings"]
    labels = list("ABCDEFGH"[: len(endings)])
    label = str(row["label"])
    if not label.isdecimal() or int(label) >= len(labels):
        raise ValueError(f"its label {label!r} is the number of no ending")
    facts = {name: row[name] for name in ("activity_label", "split_type", "source_id") if name in row}
    question = (f"{activity}: {story}" if activity else story).strip()
    fields = {"question": question, "choices": endings, "labels": labels, "answer": labels[int(label)]}
    return {"id": f"hellaswag/ind/{row.get('ind', number)}", **fields, **facts}


def mbpp(row: Row, file: str, number: int) -> Row:
    """Convert MBPP, sanitized or in full: the prompt may be called text, its imports may be lines of set-up."""
    if "id" in row:
        return row
    imports = row["test_imports"] if "test_imports" in row else str(row.get("test_setup_code") or "").splitlines()
    fields = {"prompt": row["prompt"] if "prompt" in row else row["text"], "code": row["code"]}
    name = row["task_id"]
    return {"id": f"mbpp/{name}", "task_id": name, **fields, "test_imports": imports, "test_list": row["test_list"]}
