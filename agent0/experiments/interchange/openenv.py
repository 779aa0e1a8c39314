"""The training trace of OpenEnv (version 1): what a policy sampled turn by turn, as token ids with log-probabilities
and a mask over prompt and completion. It has no text and no reward, so nothing is read from one."""

from collections.abc import Iterator, Mapping
from typing import Any

from agent0.experiments.interchange import OWN, Document, written_note
from agent0.experiments.interchange.atif import sampled_spans


def write(row: Mapping[str, Any]) -> Iterator[Document]:
    """Write an exported attempt as one trace; nothing where it has no token ids. ``row`` is one of
    ``projections.trajectories``."""
    turns = []
    for number, span in enumerate(sampled_spans(row["trajectory"])):
        turns.append(
            {
                "node_id": f"{row['run']}/{row['attempt']}/{number}",
                "prompt_token_ids": span["prompt_token_ids"],
                "completion_token_ids": span["completion_token_ids"],
                "per_token_logps": span["logprobs"],
                "loss_mask": span["extra"]["loss_mask"],
                "metadata": {} if number else {OWN: written_note(row, tokens=False)},
            }
        )
    if turns:
        yield {"schema_version": 1, "turns": turns}
