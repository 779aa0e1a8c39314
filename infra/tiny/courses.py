"""What the built-in models are taught: a course is a kind of training example, the families it is about, and a model's
shape; a mix says how much of it is taught when."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

from agent0.infra.tiny.examples import (
    CLIMBED,
    TAUGHT,
    Make,
    Phase,
    climb_example,
    climb_teacher_example,
    tool_example,
    weights,
)
from agent0.infra.tiny.long_examples import LONG, LONG_MARKUP, LONG_PIECES, long_example
from agent0.infra.tiny.tokenizer import BOX, MARKUP, PAIRS, SINGLES

SHAPE: Mapping[str, float] = {
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
SMALL: Mapping[str, float] = {
    "hidden_size": 96,
    "intermediate_size": 256,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "rope_theta": 1000.0,
}
SMALLEST: Mapping[str, float] = {
    "hidden_size": 64,
    "intermediate_size": 144,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "rope_theta": 1000.0,
}


@dataclass(frozen=True)
class Course:
    """How a training example is made, the families it is about, and what is a single token (``markup``; ``pieces`` says
    how texts are cut before merging).

    ``shape``: the model's. ``levels``: the highest level that is taught, 0 for all. ``stretch``: positions of a
    training sequence are multiplied by a factor drawn from 1 to this, so that longer sequences than those taught are
    not wholly new to the model. ``kept``: examples of each level that are saved beside the model, for a run to replay.
    ``matrices``: what moves them; AdamW moves the rest in any case. ``start``: the course of the packaged model that it
    goes on from, where it does; then the tokenizer is made from examples of this course, not from tasks. ``card``: the
    course whose card's text its models have, where it is another one.
    """

    example: Make
    families: tuple[str, ...]
    markup: tuple[str, ...]
    pieces: str = PAIRS
    shape: Mapping[str, float] = field(default_factory=lambda: SHAPE)
    levels: int = 0
    stretch: float = 1.0
    kept: int = 0
    matrices: Literal["muon", "adamw"] = "muon"
    start: str = ""
    card: str = ""


@dataclass(frozen=True)
class Mix:
    """The training mix of the built-in model: phases, batch size, and the course its training examples come from (a
    key of ``COURSES``). ``shape``: where the model's is another than the course's."""

    phases: tuple[Phase, ...]
    batch: int = 48
    course: str = "tools"
    shape: Mapping[str, float] = field(default_factory=dict)

    def shaped(self) -> Mapping[str, float]:
        """The model's shape: numbers of Qwen2Config by name."""
        return {**COURSES[self.course].shape, **self.shape}

    def plain(self) -> dict[str, object]:
        """What ``provenance.json`` records of it, as JSON has it; the shape only where it is the mix's own."""
        fields = json.loads(json.dumps(asdict(self)))
        return {name: value for name, value in fields.items() if self.shape or name != "shape"}


DEFAULT_MIX = Mix(
    (
        Phase(1200, 0.02, 0.016, (0.45, 0.3, 0.15, 0.1), tool=0.75, teacher=0.1),
        Phase(1400, 0.016, 0.001, (0.3, 0.3, 0.22, 0.18), tool=0.8, teacher=0.1),
        Phase(130, 0.005, 0.001, (0.3, 0.3, 0.2, 0.2), tool=0.3, teacher=0.12),
    )
)
"""Copy short things, copy longer things, then the habit of guessing."""
CLIMB_MIX = Mix((Phase(900, 0.0015, 0.0001, (1.0,) * 6, tool=0.0, teacher=0.0),), batch=64, course="climb")
"""The six lowest levels of a ladder, each as often."""
CLIMB_WORDS_MIX = Mix((Phase(1800, 0.0015, 0.0001, (1.0,) * 6, tool=0.0, teacher=0.0),), batch=64, course="climb_words")
"""The same; after 900 steps one base of five had not learned its course."""
CLIMB_TEACHER_MIX = Mix(
    (Phase(400, 0.002, 0.0002, (1.0, 2.0, 4.0, 8.0, 8.0, 8.0), tool=0.0, teacher=1.0),),
    batch=64,
    course="climb_teacher",
)
"""The same six levels; of the lowest there are few tasks, so fewer of them are written."""
LONG_MIX = Mix((Phase(3000, 0.015, 0.0002, (1.0,), tool=0.15, teacher=0.0),), batch=24, course="long")
"""Tasks of three steps, a first one and two that go on from it."""
MIXES = {
    "tools": DEFAULT_MIX,
    "climb": CLIMB_MIX,
    "climb_sums": replace(CLIMB_MIX, course="climb_sums"),
    "climb_addition": replace(CLIMB_MIX, course="climb_addition"),
    "climb_words": CLIMB_WORDS_MIX,
    "climb_teacher": CLIMB_TEACHER_MIX,
    "long": LONG_MIX,
}
CLIMB = Course(
    climb_example, CLIMBED, BOX, SINGLES, SMALL, levels=6, stretch=2.0, kept=200, matrices="adamw", card="climb"
)
COURSES = {
    "tools": Course(tool_example, TAUGHT, MARKUP),
    "climb": CLIMB,
    "climb_sums": replace(CLIMB, example=partial(climb_example, ladder="digit_sums"), families=("digit_sums",)),
    "climb_addition": replace(
        CLIMB, example=partial(climb_example, ladder="column_addition"), families=("column_addition",)
    ),
    "climb_words": replace(CLIMB, example=partial(climb_example, ladder="word_reversal"), families=("word_reversal",)),
    "climb_teacher": Course(
        climb_teacher_example, CLIMBED, (), SINGLES, SMALLEST, levels=6, stretch=2.0, matrices="adamw"
    ),
    "long": Course(long_example, LONG, LONG_MARKUP, LONG_PIECES, levels=1, stretch=1.2, start="tools"),
}


def read_mix(path: Path) -> Mix:
    """A mix from JSON: {"batch": 48, "phases": [{"steps": …, "lr": …, "lr_end": …, "levels": […], …}]}, or the
    ``provenance.json`` of a model that was built."""
    record = json.loads(path.read_text(encoding="utf-8"))
    record = record.get("mix", record)
    phases = tuple(Phase(**{**phase, "levels": weights(phase["levels"])}) for phase in record["phases"])
    course = str(record.get("course", Mix(()).course))
    if course not in COURSES:
        raise ValueError(f"there is no course {course!r}: {', '.join(COURSES)}")
    shape = {name: value for name, value in record.get("shape", {}).items() if name in SHAPE}
    return Mix(phases, int(record.get("batch", Mix(()).batch)), course, shape)
