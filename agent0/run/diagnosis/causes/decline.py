"""A student that ends below where it began, or of which no checkpoint was promoted, for no cause that is known."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Evidence

LOST = 4
KEYS = ("run.training.student.lr", "run.training.student.", "run.training.", "run.rewards.", "run.curriculum.")


@cause(85)
def decline(case: Case) -> Cause | None:
    """Report the first checkpoint far below the best before it, or that the gate refused all of them."""
    made = [t for t in case.trainings if t.role == "student" and t.status != "requested"]
    refused = [t for t in made if t.status == "rejected"]
    settings = case.changed(*KEYS)
    differ = f" ({'; '.join(map(str, settings[:2]))})" if settings else ""
    held = list(case.validations())
    if len(refused) > 1 and len(refused) == len([t for t in made if t.samples]):
        told = f"no checkpoint was promoted: {refused[0].reason.partition(';')[0]}{differ}"
        seen = tuple(Evidence(one.reason, checkpoint=one.checkpoint, event=one.requested) for one in refused[:3])
        return _found(case, refused[0].iteration, told, seen, refused[0].requested)
    if len(held) > 1 and held[0].accuracy and (last := held[-1]).accuracy is not None:
        pairs = list(zip(held[0].outcomes, last.outcomes, strict=False))
        lost, gained = pairs.count(("1", "0")), pairs.count(("0", "1"))
        if lost >= LOST and lost >= 3 * max(1, gained):
            told = f"validation decreased from {held[0].accuracy:.3f} to {last.accuracy:.3f}: {lost} tasks lost, "
            told += f"{gained} gained{differ}"
            seen = (Evidence(told, checkpoint=last.checkpoint, event=last.event),)
            return _found(case, last.iteration, told, seen, last.event)
    return None


def _found(case: Case, iteration: int, told: str, seen: tuple[Evidence, ...], event: int) -> Cause:
    settings = case.changed(*KEYS)
    mend = case.again(settings) if settings else f"agent0 report {case.run}"
    return Cause("decline", iteration, told, seen, mend, fatal=False, settings=settings, event=event)
