"""BIG-Bench-Hard, its logic subsets: letters, yes and no, truth values, counts, closing brackets."""

import re

from agent0.evaluation.benchmarks import Benchmark, Item, benchmark
from agent0.evaluation.benchmarks.rows import Row, published
from agent0.grading import Grade, grade
from agent0.ports.sandbox import Sandbox

_TASKS = (
    "boolean_expressions",
    "causal_judgement",
    "date_understanding",
    "disambiguation_qa",
    "dyck_languages",
    "formal_fallacies",
    "geometric_shapes",
    "hyperbaton",
    "logical_deduction_five_objects",
    "logical_deduction_seven_objects",
    "logical_deduction_three_objects",
    "movie_recommendation",
    "multistep_arithmetic_two",
    "navigate",
    "object_counting",
    "penguins_in_a_table",
    "reasoning_about_colored_objects",
    "ruin_names",
    "salient_translation_error_detection",
    "snarks",
    "sports_understanding",
    "temporal_sequences",
    "tracking_shuffled_objects_five_objects",
    "tracking_shuffled_objects_seven_objects",
    "tracking_shuffled_objects_three_objects",
    "web_of_lies",
    "word_sorting",
)
_option = re.compile(r"^\(?([A-R])\)?$")


def _read(row: Row) -> Item:
    """``{"id": "bbh/boolean_expressions/46", "question": "( ( not True ) or True ) is", "answer": "True"}``"""
    identity, answer = str(row["id"]), str(row["answer"])
    subset = identity.split("/")[-2:][0]
    question, facts = str(row["question"]), {"subject": subset}
    restatements = question, question.partition("\nOptions:")[0]
    return Item(identity, question, answer, f"Answer: {answer}", cluster=subset, facts=facts, restatements=restatements)


async def judge(item: Item, reply: str, answer: str | None, sandbox: Sandbox) -> Grade:
    """Grade exactly, but for case, brackets around a letter and spaces; numbers by value."""
    if answer is None:
        return Grade(False, "no answer", item.gold)
    if option := _option.match(item.gold):
        match = re.match(r"^\W*([A-Ra-r])(?:\W.*)?$", answer.strip().removeprefix("\\text{"), re.DOTALL)
        got = match[1].upper() if match else answer[:40]
        return Grade(got == option[1], "letter", option[1], got)
    if re.fullmatch(r"-?\d+", item.gold):
        return grade(item.gold, answer)
    plain = [re.sub(r"\s+|\\text|[{}$]" if not re.search(r"[<>()\[\]{}]", item.gold) else r"\s+", "", text).casefold()
             for text in (item.gold, answer)]  # fmt: skip
    return Grade(plain[0] == plain[1].rstrip("."), "text", item.gold, answer[:100])


BBH = benchmark(
    Benchmark(
        name="bbh",
        title="BIG-Bench-Hard, logic",
        domain="logic",
        files=("bbh_logic.jsonl", "bbh_logic16x40.jsonl"),
        parts=tuple(f"{task}.json" for task in _TASKS),
        fields=("id", "question", "answer"),
        convert=published.bbh,
        read=_read,
        judge=judge,
        licence="MIT",
        source="suzgunmirac/BIG-Bench-Hard, bbh/*.json",
    )
)
