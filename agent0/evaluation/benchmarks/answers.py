"""Questions with one short answer: grade-school maths, competition maths, and word problems."""

from functools import partial

from agent0.evaluation.benchmarks import Benchmark, Item, benchmark
from agent0.evaluation.benchmarks.rows import Row, published
from agent0.grading import Grade
from agent0.grading.math.symbolic import decide
from agent0.ports.sandbox import Sandbox

_FIELDS = ("id", "question", "answer")


def _solved(row: Row) -> Item:
    r"""``{"id": "gsm8k/test/0", "question": "Janet's ducks …", "answer": "18", "solution": "… #### 18"}``"""
    answer = str(row["answer"])
    return Item(str(row["id"]), str(row["question"]), answer, str(row.get("solution") or f"\\boxed{{{answer}}}"))


def _aime(row: Row) -> Item:
    """As above; answers are whole numbers from 0 to 999, written with leading zeros in some sources."""
    item = _solved(row)
    return Item(item.id, item.question, str(int(item.gold)), f"\\boxed{{{item.gold}}}")


async def judge(item: Item, reply: str, answer: str | None, sandbox: Sandbox) -> Grade:
    """Grade the extracted answer by value; where none was extracted, what is read of the reply as its answer.

    Where the gold is a number, the answer must be one too: ``76*26+89`` is not right for 2065.
    """
    if answer is not None:
        return await decide(item.gold, answer, sandbox)
    return await decide(item.gold, reply, sandbox, reply=True)


_maths = partial(Benchmark, domain="math", fields=_FIELDS, read=_solved, judge=judge)
GSM8K = benchmark(
    _maths(
        name="gsm8k",
        convert=published.gsm8k,
        title="GSM8K, grade-school maths",
        files=("gsm8k_test.jsonl",),
        licence="MIT (OpenAI)",
        source="openai/grade-school-math, grade_school_math/data/test.jsonl",
    )
)
MATH = benchmark(
    _maths(
        name="math",
        convert=published.math,
        title="MATH, competition maths",
        files=("math_test.jsonl", "math_test_other_dev200.jsonl"),
        licence="MIT (Hendrycks et al.)",
        source="hendrycks/math, test split",
    )
)
MATH500 = benchmark(
    _maths(
        name="math500",
        convert=published.math,
        title="MATH-500",
        files=("math500.jsonl", "math500_first300.jsonl"),
        licence="MIT (Hendrycks et al.; split OpenAI prm800k)",
        source="openai/prm800k, prm800k/math_splits/test.jsonl",
    )
)
SVAMP = benchmark(
    _maths(
        name="svamp",
        convert=published.svamp,
        title="SVAMP, varied word problems",
        files=("svamp.jsonl", "svamp300.jsonl"),
        licence="MIT",
        source="arkilpatel/SVAMP",
    )
)
AIME24 = benchmark(
    _maths(
        name="aime24",
        convert=published.aime,
        title="AIME 2024",
        files=("aime24.jsonl",),
        read=_aime,
        licence="problem texts (c) MAA: evaluation only, not to be passed on",
        source="QwenLM/Qwen2.5-Math, evaluation/data/aime24",
        ships=False,
    )
)
