"""Part of the rim: the cache of answers that cost money."""

from typing import TYPE_CHECKING

from agent0.settings import Settings

if TYPE_CHECKING:
    from infra.gateway.cache import AnswerCache


def open_cache(settings: Settings) -> "AnswerCache":
    """The cache in the data folder; its file is made at the first look."""
    from infra.gateway.cache import AnswerCache

    plan = settings.router.cache
    return AnswerCache(settings.home / "cache" / "answers.sqlite", plan.days, plan.mib)
