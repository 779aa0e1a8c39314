"""What drawing several turns of a prompt in one call gains on a llama.cpp server (`run.student.choices`): such turns
asked for one a call and four a call, by turns, in one run.

    python -m benchmarks.choices                # the built-in model, with short prompts and long ones (a minute)
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import cast

from agent0.events.values import Turn
from agent0.infra.models.llama_cpp import LlamaCpp
from agent0.infra.models.transformers import BASE
from agent0.ports.models import GenerateRequest, Sampling
from agent0.ports.storage import Artifacts
from agent0.settings import StudentConfig

ROUNDS, PROMPTS, TURNS, SLOTS = 5, 4, 4, 16
QUESTION = "What is {} + {}?"


def requests(words: int, joint: int, round_: int) -> list[GenerateRequest]:
    """``TURNS`` turns of each of ``PROMPTS`` prompts, which no other round has; each reads ``words`` more questions."""
    asked = []
    for place in range(PROMPTS):
        more = " ".join(QUESTION.format(10 + n % 80, 10 + place + round_ % 40) for n in range(words + 1))
        turns = (Turn(role="user", content=f"{round_ % 97} {place} {more}"),)
        asked += [
            GenerateRequest(turns, Sampling(1.0, 1.0, 32, seed=1000 * place + n), joint=joint, group=f"{place}")
            for n in range(TURNS)
        ]
    return asked


async def measure(model: LlamaCpp, words: int) -> str:
    """A line: prompt tokens, turns a second one a call and ``TURNS`` a call, and their ratio in each round."""
    speeds: dict[int, list[float]] = {1: [], TURNS: []}
    prompt = 0
    for round_ in range(2 * ROUNDS + 2):
        joint = (1, TURNS)[round_ % 2]
        began = time.perf_counter()
        found = await asyncio.gather(*(model.generate(one) for one in requests(words, joint, round_)))
        if round_ > 1:  # the first two start the server and try its rule for seeds
            tokens = sum(one.usage.completion_tokens for one in found)
            speeds[joint].append(tokens / (time.perf_counter() - began))
            prompt = len(found[0].prompt_ids)
    ratios = sorted(four / one for one, four in zip(speeds[1], speeds[TURNS], strict=True))
    cells = (prompt, *(f"{median(speeds[joint]):.0f}" for joint in (1, TURNS)), f"{median(ratios):.2f}")
    return f"| {' | '.join(map(str, cells))} | {ratios[0]:.2f} to {ratios[-1]:.2f} |"


async def work() -> None:
    """Measure with short prompts and with long ones."""
    from tests.memory import MemoryArtifacts

    actor = StudentConfig(provider="llamacpp", parallel=SLOTS, num_ctx=2048, max_tokens=32)
    with tempfile.TemporaryDirectory() as folder:
        model = LlamaCpp(BASE, cast(Artifacts, MemoryArtifacts()), actor, cache=Path(folder), threads=1)
        try:
            for words in (0, 60):
                print(await measure(model, words), flush=True)
        finally:
            await model.close()


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    print("| tokens of a prompt | tokens a second, one a call | four a call | ratio, median | of five |")
    asyncio.run(work())


if __name__ == "__main__":
    main()
