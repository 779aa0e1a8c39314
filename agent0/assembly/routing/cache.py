"""Part of the rim: the cache of answers that cost money."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agent0.infra.gateway.cache import AnswerCache
from agent0.settings import Settings


def open_cache(settings: Settings) -> AnswerCache:
    """The cache in the data folder; its file is made at the first look."""
    plan = settings.router.cache
    return AnswerCache(settings.home / "cache" / "answers.sqlite", plan.days, plan.mib)


@contextmanager
def _looked_into(settings: Settings) -> Iterator[AnswerCache]:
    cache = open_cache(settings)
    try:
        yield cache
    finally:
        cache.close()


def cached_models(settings: Settings) -> list[dict[str, Any]]:
    """What is kept of each model; amounts in nano-dollars."""
    with _looked_into(settings) as cache:
        return cache.models()


def clear_cache(settings: Settings) -> int:
    """Drop all answers that are kept; returns how many there were."""
    with _looked_into(settings) as cache:
        return cache.clear()
