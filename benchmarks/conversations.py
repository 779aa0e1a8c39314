"""Conversations of several turns with a language model on a CPU: turns that join others beside turns in rounds.

    python -m benchmarks.conversations FOLDER [--conversations 16] [--turns 6] [--format bf16]

Each conversation begins with the same 400 tokens and 100 of its own, and reads 60 tokens between its turns, which have
20 to 80 tokens, one in ten of them 400. In rounds all conversations finish turn n before any begins turn n + 1;
joined, each goes on at once. Same lengths, same engine, one after the other in this process. FOLDER has the model in
safetensors.
"""

import argparse
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from agent0.infra.engine.decoding import write, writing
from agent0.infra.engine.formats.best_format import best_format
from agent0.infra.engine.formats.folder_weights import FolderWeights, embedding_of, shape_in
from agent0.infra.engine.formats.prefixes import Prefixes
from agent0.infra.engine.formats.products import FORMATS
from agent0.infra.engine.qwen2_functional import Weights, weights_of
from agent0.infra.engine.requests import Written
from agent0.infra.engine.sampling import Row
from agent0.ports.models import Sampling

TOKENS = 1000, 20_000
"""Token ids are drawn from between these."""
Way = Callable[[Weights, list["Conversation"]], None]


@dataclass
class Conversation:
    """``text`` so far, the lengths of the turns to come, and the one that is being written."""

    text: list[int]
    lengths: list[int]
    rng: random.Random
    row: Row | None = field(default=None)

    def next_row(self) -> Row | None:
        """The next turn, behind what the last one wrote and what is read after it; None after the last."""
        if self.row:
            self.text += self.row.written.ids + drawn(self.rng, 60)
        self.row = None
        if self.lengths:
            sampling = Sampling(temperature=1.0, seed=len(self.lengths))
            self.row = Row(Written(list(self.text)), sampling, self.lengths.pop())
        return self.row


def drawn(rng: random.Random, count: int) -> list[int]:
    """So many token ids."""
    return [rng.randrange(*TOKENS) for _ in range(count)]


def conversations(count: int, turns: int, seed: int) -> list[Conversation]:
    """The same for the same arguments."""
    rng = random.Random(seed)
    system = drawn(rng, 400)

    def length() -> int:
        return 400 if rng.random() < 0.1 else rng.randint(20, 80)

    return [
        Conversation(system + drawn(rng, 100), [length() for _ in range(turns)], random.Random(n)) for n in range(count)
    ]


def next_rows(talks: list[Conversation]) -> list[Row]:
    """The next turns of those that have one."""
    return [row for talk in talks if (row := talk.next_row())]


def in_rounds(weights: Weights, talks: list[Conversation]) -> None:
    """All next turns at once, again and again."""
    prefixes = Prefixes()
    while rows := next_rows(talks):
        write(weights, rows, (), prefixes)


def joined(weights: Weights, talks: list[Conversation]) -> None:
    """The next turn of a conversation as soon as its last one has ended."""
    prefixes = Prefixes()
    waiting = next_rows(talks)
    while waiting:
        for _ in writing(weights, waiting, (), prefixes):
            waiting += next_rows([talk for talk in talks if talk.row and talk.row.ended])
        waiting += next_rows([talk for talk in talks if talk.row and talk.row.ended])


def seconds(way: Way, weights: Weights, talks: list[Conversation]) -> float:
    """How long it takes to hold ``talks``."""
    start = time.monotonic()
    with torch.inference_mode():
        way(weights, talks)
    return time.monotonic() - start


def main() -> None:
    """Print both, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--conversations", type=int, default=16)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--format", default="", choices=["", *FORMATS])
    chosen = parser.parse_args()
    torch.set_num_threads(2)
    shape, parameters = shape_in(chosen.folder), FolderWeights(chosen.folder)
    if shape is None:
        raise SystemExit(f"The model in {chosen.folder} is not computed in packed formats.")
    with torch.inference_mode():
        weights = weights_of(shape, parameters, {}, FORMATS[chosen.format or best_format()])
        weights = replace(weights, embed=embedding_of(parameters))
    seconds(joined, weights, conversations(1, 1, 9))
    written = sum(sum(talk.lengths) for talk in conversations(chosen.conversations, chosen.turns, 0))
    took = {
        name: seconds(way, weights, conversations(chosen.conversations, chosen.turns, 0))
        for name, way in (("in rounds", in_rounds), ("joined", joined))
    }
    for name, each in took.items():
        print(f"{name}: {each:.0f} s, {written / each:.0f} tokens a second")
    print(f"joined is {took['in rounds'] / took['joined']:.2f} times as fast")


if __name__ == "__main__":
    main()
