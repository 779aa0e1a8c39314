"""Whether a language model answers as well in each format of numbers as in single precision.

    python -m benchmarks.format_accuracy FOLDER --questions gsm8k_train.jsonl [--items 400] [--formats fp32,bf16,int8]

FOLDER has the model in safetensors. Each question (``question`` and ``answer`` of a row, GSM8K's) is answered once,
greedily, by one Python program of at most 220 tokens after two worked examples; the sandbox runs it, and the verifier
of answers compares what it prints. Each format stands beside the first one, paired by item: difference in points with
its 95 % interval and McNemar's p.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from agent0.events.values import Turn
from agent0.grading.golds import one_answer
from agent0.grading.math.symbolic import decide
from agent0.infra.models.transformers import Transformers
from agent0.infra.sandbox import open_sandbox
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.ports.models import GenerateRequest, Sampling
from agent0.ports.sandbox import Sandbox, SandboxCall
from agent0.settings import SandboxSettings
from agent0.stats.paired_tests import compare
from agent0.turns.calls.blocks import first_block

THREADS, TOKENS, AT_ONCE = 2, 220, 128
ASK = "Write one Python program in a ```python block that computes the answer and prints it. Comment each step."
EXAMPLES = (
    (
        "Nora has 3 boxes of 12 pencils. She gives 8 pencils to her brother. How many pencils are left?",
        "# Pencils in all boxes\npencils = 3 * 12\n# She gives 8 away\nleft = pencils - 8\nprint(left)",
    ),
    (
        "A shirt costs $20. It is sold at 25% off, and Ben buys 4. How many dollars does he pay?",
        "# Price of a shirt after the discount\nprice = 20 * (1 - 0.25)\n# He buys 4\ntotal = price * 4\nprint(total)",
    ),
)


def conversation(question: str) -> tuple[Turn, ...]:
    """The worked examples as earlier turns, and ``question`` as the last."""
    turns = [Turn(role="system", content=ASK)]
    for text, program in EXAMPLES:
        turns += [Turn(role="user", content=text), Turn(role="assistant", content=f"```python\n{program}\n```")]
    return (*turns, Turn(role="user", content=question))


async def replies(folder: Path, precision: str, questions: Sequence[str]) -> list[str]:
    """Greedy replies, in the order of ``questions``."""
    with tempfile.TemporaryDirectory() as scratch:
        artifacts = FileArtifacts(Path(scratch))
        model = Transformers(folder, artifacts, name=precision, threads=THREADS, precision=precision, max_batch=AT_ONCE)
        sampling = Sampling(temperature=0.0, max_tokens=TOKENS)
        turns = await asyncio.gather(*(model.generate(GenerateRequest(conversation(q), sampling)) for q in questions))
        await model.close()
    return [turn.text for turn in turns]


async def right(reply: str, gold: str, sandbox: Sandbox) -> bool:
    """Whether the last line that the program of ``reply`` prints is ``gold``."""
    block = first_block(reply, {"python": "python"})
    if block is None:
        return False
    result = await sandbox.call(SandboxCall("python", block.body))
    lines = result.stdout.strip().splitlines()
    return bool(lines) and (await decide(gold, lines[-1], sandbox)).correct is True


async def scores(folder: Path, precision: str, rows: Sequence[dict[str, str]]) -> list[float]:
    """1.0 for each row that is answered right, else 0.0."""
    texts = await replies(folder, precision, [row["question"] for row in rows])
    sandbox = await open_sandbox(SandboxSettings(queue=4096), workers=THREADS)
    golds = [one_answer(row["answer"]) for row in rows]
    decided = await asyncio.gather(*(right(*pair, sandbox) for pair in zip(texts, golds, strict=True)))
    await sandbox.close()
    return [float(each) for each in decided]


def main() -> int:
    """Print the table; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.format_accuracy")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--formats", default="fp32,bf16,int8")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.questions.read_text().splitlines()][: options.items]
    exact: list[float] = []
    for precision in options.formats.split(","):
        outcomes = asyncio.run(scores(options.folder, precision, rows))
        exact = exact or outcomes
        difference = compare(exact, outcomes)
        row = {"format": precision, "items": len(rows), "right": sum(outcomes), **asdict(difference)}
        print(json.dumps(row) if options.json else _line(row), flush=True)
    return 0


def _line(row: dict[str, object]) -> str:
    low, high = (f"{100 * float(str(row[name])):+.1f}" for name in ("lower95", "upper95"))
    points = 100 * float(str(row["mean"]))
    changed = f"{row['gained']} gained, {row['lost']} lost, p {row['p']:.2f}"
    return f"{row['format']:6} {row['right']:.0f} of {row['items']}  {points:+.1f} points ({low} to {high}), {changed}"


if __name__ == "__main__":
    sys.exit(main())
