"""What memory a model with packed matrices needs to generate and to train, from its sizes alone, and how much of it is
computed at once."""

from agent0.infra.engine.memory_need import BYTES, MemoryNeed, Shape, decoded

SLOTS = 128
"""Turns that are written at once; others wait for a place."""
KEYS = 1 << 31
"""Bytes of keys and values of the turns that are written at once: where turns are long, fewer are."""
BLOCKS = 1 << 29
"""Bytes of keys and values that are kept of earlier texts."""
TOKENS = 768
"""Tokens that are trained on at once: products of fewer rows are slower, more would only take memory."""
LEARNED = 256
"""Learned tokens whose logits are held at once."""
STORED = 2.0
"""Bytes of a number of the table of embeddings, which is kept as it is stored."""


def recomputed(setting: str, tokens: int) -> bool:
    """Whether what a gradient needs of a layer of ``tokens`` tokens is computed again rather than kept, by the setting
    ``gradient_checkpointing``; ``auto``: of more than are trained on at once, which one long trajectory is."""
    return setting == "on" or (setting == "auto" and tokens > TOKENS)


def turns_at_once(numbers: int, tokens: int) -> int:
    """How many turns of ``tokens`` tokens with their prompts are written at once, at least one; ``numbers`` is how many
    a token's keys and values are, in all layers, four bytes each."""
    return max(1, min(SLOTS, KEYS // (4 * numbers * tokens)))


def need_to_generate(
    shape: Shape, *, rows: int, prompt: int, tokens: int, precision: str, kept: int = BLOCKS
) -> MemoryNeed:
    """The bytes of ``rows`` turns of ``tokens`` tokens after prompts of ``prompt`` tokens, all of which differ, as many
    at once as ``turns_at_once`` says:

    weights      of the linear layers and the head in ``precision``, the table of embeddings beside them
    activations  ``decoded``, and the blocks of earlier texts, ``kept`` at most
    logits       rows x vocabulary x 12: of one token each, their logarithms, and what samples from them
    """
    rows = min(rows, turns_at_once(2 * shape.cached * shape.layers, prompt + tokens))
    blocks = min(kept, 8.0 * shape.cached * shape.layers * rows * (prompt + tokens))
    activations = decoded(shape, rows, prompt, tokens) + blocks
    return MemoryNeed(_weights(shape, precision), 0.0, 0.0, activations, rows * shape.vocabulary * 12.0)


def need_to_train(
    shape: Shape, *, rank: int, rows: int, tokens: int, learned: int, precision: str, checkpointing: bool
) -> MemoryNeed:
    """The bytes of one step on ``rows`` trajectories of ``tokens`` tokens at once, ``learned`` of them the model's.
    With N = rows x tokens:

    weights      as for generating
    adapter      (4 + 4) x rank x (inputs + outputs of the linear layers), and as much for the optimizer's memories
    activations  N x 4 (10 h + 4 i) x L; with checkpointing N x 4 (h L + 10 h + 5 i)
    logits       of 256 learned tokens at most: V x 8 each, and of all learned ones h x 4
    """
    trained, count = 8.0 * rank * shape.ways, rows * tokens
    layer = 4.0 * (10 * shape.hidden + 4 * shape.intermediate)
    layers = 4.0 * (shape.hidden * shape.layers + shape.intermediate) + layer if checkpointing else layer * shape.layers
    logits = min(rows * learned, LEARNED) * shape.vocabulary * 8.0 + rows * learned * shape.hidden * 4.0
    return MemoryNeed(_weights(shape, precision), trained, trained, count * layers, logits)


def _weights(shape: Shape, precision: str) -> float:
    head = shape.vocabulary * shape.hidden
    return BYTES[precision] * (shape.linear + head) + STORED * head
