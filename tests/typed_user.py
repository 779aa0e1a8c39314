"""Ten lines of a user's, read by ``mypy --strict`` with the rest: what is right passes, and each mistake is found (an
ignore that nothing needs is an error, too)."""

import agent0


@agent0.reward("typed-user", role="student", reads=("correct", "tokens"))
def brevity(features: agent0.Features) -> float | None:
    """1 for a right answer of no tokens."""
    return 1 - min(1.0, features["tokens"] / 200) if features["correct"] else 0.0


def best(home: str) -> tuple[str, float]:
    """The run with the best last validation, after one more."""
    folder = agent0.open(home, profile="scripted")
    folder.start(settings={"run.tasks": 4, "run.rewards.weights.typed-user": 0.2}, say=print)
    scores = {run.id: float(run.curve()[-1]["validation"]) for run in folder.runs()}
    wrong: list[str] = [trajectory.question for trajectory in folder.run().trajectories(correct=False)]
    kinds: set[str] = {recorded.type for recorded in folder.run().events()}
    print(len(wrong), kinds)  # noqa: T201
    return max(scores.items(), key=lambda item: item[1])


def mistakes(folder: agent0.Folder, run: agent0.Run) -> None:
    """What a type checker must not let through."""
    folder.strat("tiny")  # type: ignore[attr-defined]
    folder.fork(run, at="500")  # type: ignore[arg-type]
    agent0.opne("home")  # type: ignore[attr-defined]
    run.status = "finished"  # type: ignore[misc]
    agent0.reward("x", role="nobody", reads=())  # type: ignore[arg-type]
