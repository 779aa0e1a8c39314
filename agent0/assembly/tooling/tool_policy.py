"""Part of the rim: what persons changed about tools, read from the log and laid over a profile's settings."""

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.stamping import recorded
from agent0.events.policies import RUN, PolicyChanged, PolicyKind
from agent0.infra.log.event_log import NoLogError
from agent0.settings import PolicyConfig, Settings
from agent0.tools.policy import FIELDS, resolve, verdict


async def changes(settings: Settings) -> list[PolicyChanged]:
    """Every change there ever was, oldest first; none where there is no log.

    Raises:
        DependencyError: there is one that cannot be reached. What was denied must not be forgotten for that.
    """
    if not settings.nats.url and not (settings.home / "nats").is_dir():
        return []
    try:
        async with open_log(settings, "reader") as log:
            recorded = [stored.event async for stored in log.read(RUN, (PolicyChanged.__name__,))]
    except NoLogError:
        return []
    return [event for event in recorded if isinstance(event, PolicyChanged)]


async def with_policy(settings: Settings) -> Settings:
    """``settings`` whose policy is what holds for their profile now: what a run that starts is allowed for ever.

    Raises:
        DependencyError: see ``changes``.
    """
    recorded_changes = await changes(settings)
    policy = resolve(settings.run.policy, recorded_changes, settings.profile)
    return settings.model_copy(update={"run": settings.run.model_copy(update={"policy": policy})})


async def change(
    settings: Settings, kind: PolicyKind, name: str, allowed: bool, reason: str
) -> tuple[PolicyConfig, bool]:
    """Record a change for the settings' profile. Returns what was allowed before, and whether there was anything to
    change.

    Raises:
        DependencyError, LogError: the log cannot be written.
    """
    change = PolicyChanged(profile=settings.profile, kind=kind, name=name, allowed=allowed, reason=reason)
    before = (await with_policy(settings)).run.policy
    if resolve(before, [change], settings.profile) == before or (allowed and verdict(before, kind, name).allowed):
        return before, False
    async with open_log(settings, make=True) as log:
        await log.append([recorded(RUN, change)])
    return before, True


def rows(configured: PolicyConfig, resolved: PolicyConfig) -> list[dict[str, object]]:
    """Every entry of either, by kind: ``allowed``, and whether the settings or a change said so."""
    out: list[dict[str, object]] = []
    for kind, field in FIELDS.items():
        before, after = getattr(configured, field), getattr(resolved, field)
        for name in dict.fromkeys([*before, *after]):
            origin = "settings" if (name in before) == (name in after) else "changed"
            out.append({"kind": kind, "name": name, "allowed": name in after, "origin": origin})
    for name in dict.fromkeys([*configured.withheld, *resolved.withheld]):
        kept, by_settings = name in resolved.withheld, name in configured.withheld
        out.append(
            {
                "kind": "module",
                "name": name,
                "allowed": not kept,
                "origin": "settings" if kept == by_settings else "changed",
            }
        )
    return out
