"""Questions with lettered choices: science questions, and how an everyday story goes on.

The letter is what is inside the last box, else a reply that is a letter or a choice's text alone, else what a reply
states as its answer (``agent0.grading.answer_in``).
"""

import re
from functools import partial

from agent0.evaluation.benchmarks import Benchmark, Item, benchmark
from agent0.evaluation.benchmarks.rows import Row, published
from agent0.grading import Grade, answer_in
from agent0.ports.sandbox import Sandbox

_FIELDS = ("id", "question", "choices", "labels", "answer")
_LISTS = ("choices", "labels")
_prefix = re.compile(r"^\W*(?:option|choice|answer)\s+(?=\(?[A-Za-z0-9]\b)", re.IGNORECASE)
_letter = re.compile(r"^\W*(?:\\text\w*\{)?\W*([A-Za-z0-9])\W*\}?(?:[.):]\s.*)?\W*$", re.DOTALL)
ASK = "Answer with the letter of the right choice."


def _lettered(row: Row) -> Item:
    """``{"id": "arc_challenge/Mercury_SC_402164", "question": "A student sets up an experiment …", "choices":
    ["research", "interviews", "observation", "measurement"], "labels": ["A", "B", "C", "D"], "answer": "C"}``"""
    labels, choices = tuple(map(str, row["labels"])), tuple(map(str, row["choices"]))
    if len(labels) != len(choices) or len(labels) < 2 or len(set(labels)) != len(labels):
        raise ValueError(f"{len(labels)} labels for {len(choices)} choices")
    if row["answer"] not in labels:
        raise ValueError(f"answer {row['answer']!r} is none of {', '.join(labels)}")
    lines = [f"{label}. {choice}" for label, choice in zip(labels, choices, strict=True)]
    question = "\n".join([str(row["question"]), *lines, ASK])
    answer = str(row["answer"])
    cluster = str(row.get("source_id") or "")
    return Item(
        str(row["id"]),
        question,
        answer,
        f"\\boxed{{{answer}}}",
        labels,
        choices,
        cluster=cluster,
        stem=str(row["question"]),
        facts={"choices": str(len(choices))},
    )


_title, _mark = re.compile(r"\s*\[title\]"), re.compile(r"\[(?:header|step|substeps)\]")


def _story(row: Row) -> Item:
    """As above. Articles on how to do things keep marks of their page, which are read as lm-eval reads them."""
    return _lettered(
        {
            **row,
            "question": _unmarked(str(row["question"])),
            "choices": [_unmarked(str(choice)) for choice in row["choices"]],
        }
    )


def _unmarked(text: str) -> str:
    return " ".join(_mark.sub("", _title.sub(". ", text)).split())


def letter(item: Item, reply: str, answer: str | None) -> str | None:
    """Read the chosen label from a reply, None where none can be read. A choice's whole text counts as its letter."""
    for text in [answer] if answer is not None else [reply, _prefix.sub("", answer_in(reply) or "")]:
        match = _letter.match(text)
        if match and match[1].upper() in item.labels:
            return str(match[1].upper())
        labels = [
            label for label, choice in zip(item.labels, item.choices, strict=True) if text.strip() == choice.strip()
        ]
        if len(labels) == 1:
            return labels[0]
    return None


async def judge(item: Item, reply: str, answer: str | None, sandbox: Sandbox) -> Grade:
    """Grade by the letter that the reply chooses; none is wrong."""
    got = letter(item, reply, answer)
    if got is None:
        return Grade(False, "no letter of a choice", item.gold, (answer or "")[:100])
    return Grade(got == item.gold, "letter", item.gold, got)


_lettered_ones = partial(
    Benchmark,
    domain="text",
    fields=_FIELDS,
    lists=_LISTS,
    about=("split_type", "activity_label"),
    convert=published.arc,
    read=_lettered,
    judge=judge,
)
ARC_CHALLENGE = benchmark(
    _lettered_ones(
        name="arc_challenge",
        title="ARC-Challenge, science exams",
        files=("arc_challenge_test.jsonl", "arc_challenge_test400.jsonl"),
        licence="CC BY-SA 4.0 (AI2)",
        source="allenai/arc, ARC-Challenge test",
    )
)
ARC_EASY = benchmark(
    _lettered_ones(
        name="arc_easy",
        title="ARC-Easy, science exams",
        files=("arc_easy_test.jsonl", "arc_easy_test300.jsonl"),
        licence="CC BY-SA 4.0 (AI2)",
        source="allenai/arc, ARC-Easy test",
    )
)
HELLASWAG = benchmark(
    _lettered_ones(
        name="hellaswag",
        convert=published.hellaswag,
        read=_story,
        title="HellaSwag, how a story goes on",
        files=("hellaswag_val.jsonl", "hellaswag_val500.jsonl"),
        licence="MIT (R. Zellers)",
        source="rowanz/hellaswag, data/hellaswag_val.jsonl",
    )
)
