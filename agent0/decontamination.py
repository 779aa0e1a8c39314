"""Which generated tasks repeat an item of a benchmark, so that none of it is ever trained on."""

from events.base import sha256
from events.benchmarks import BenchmarksIndexed


def digest_of(facts: BenchmarksIndexed | None) -> str:
    """Of what tasks are compared with; empty where that is nothing."""
    return sha256(facts.model_dump_json()) if facts and facts.benchmarks else ""
