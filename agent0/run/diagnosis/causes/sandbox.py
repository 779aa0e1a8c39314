"""A sandbox whose limits end most calls."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, of

LIMITS = {
    "timeout": ("wall_s", "took longer than its time limit"),
    "memory": ("mem_mib", "needed more memory than its limit"),
    "busy": ("workers", "found no free place"),
    "output_flood": ("", "printed too much"),
    "sandbox_error": ("", "were lost with the sandbox"),
}
"""How a call ended -> the limit that ended it, and in words."""
DEFAULTS = {"wall_s": 5, "mem_mib": 512, "workers": 2}
SHARE, LEAST = 0.3, 2


@cause(50)
def sandbox(case: Case) -> Cause | None:
    """Report the first iteration in which many tool calls ended at a limit of the sandbox."""
    for iteration in case.iterations:
        calls = sum(iteration.calls.values())
        ended = {state: iteration.calls[state] for state in LIMITS if iteration.calls.get(state)}
        if not ended or sum(ended.values()) < max(LEAST, SHARE * calls):
            continue
        worst = max(ended, key=lambda state: ended[state])
        name, wording = LIMITS[worst]
        conclusion = f"the sandbox is too small: {of(ended[worst], calls)} tool calls {wording}"
        conclusion += f" (sandbox.{name})" if name else ""
        evidence = iteration.observations_of(f"call:{worst}")
        limit = max(DEFAULTS[name], case.here.get("sandbox", {}).get(name, 0)) if name else 0
        mend = (f"AGENT0_SANDBOX__{name.upper()}={limit:g} " if name else "") + case.again()
        advice = "Limits of the sandbox are no part of a run: give them to each process that executes it."
        return Cause("sandbox", iteration.number, conclusion, evidence, mend, advice)
    return None
