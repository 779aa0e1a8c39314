"""Whether an attempt could be parsed. No weight unless settings give one."""

from agent0.rewards import Features, reward


@reward("format", role="student", weight=0.0, reads=("answered", "parse_errors"))
def format_(features: Features) -> float | None:
    """0 for an answer and no error of form, -1 without an answer, between these a quarter an error."""
    if features["answered"] is None or features["parse_errors"] is None:
        return None
    return -min(1.0, features["parse_errors"] / 4) if features["answered"] else -1.0
