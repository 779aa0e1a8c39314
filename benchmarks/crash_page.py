"""What the kills came to, as tables and as docs/results/reliability.md."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from agent0.report.markdown.rendering import render
from tests.crashing import ROLES

FOLDER = Path(__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "results" / "reliability.md"
Line = dict[str, Any]

WORDS = {"missing": "missing", "twice": "there twice", "finished": "not finished", "rebuilt": "tables differ"}
WORDS |= {"same": "says something else", "failed": "did not come to an end"}


def wrong(line: Line) -> list[str]:
    """What of a round is not as it must be, in words."""
    bad = [name for name in ("finished", "rebuilt", "same") if not line.get(name, True)]
    bad += [name for name in ("missing", "twice", "failed") if line.get(name)]
    kills = line.get("kills", ())
    bad += [name for name, each in (("missing", "lost"), ("twice", "twice")) if any(kill[each] for kill in kills)]
    return sorted({WORDS[name] for name in bad})


def made(lines: Sequence[Line]) -> int:
    """How many processes were killed."""
    return sum(len(line.get("kills", ())) for line in lines)


def table(lines: Sequence[Line], what: str = "round") -> str:
    """A row a role, in Markdown; ``what``: under which settings (round, shipped)."""
    rounds = [line for line in lines if line["what"] == what]
    return render("crash_table.md.jinja", FOLDER, roles=[_role(role, rounds) for role in ROLES]).rstrip()


def _role(role: str, rounds: Sequence[Line]) -> Line:
    there = [line for line in rounds if any(kill["role"] == role for kill in line.get("kills", ()))]
    kills = [kill for line in there for kill in line["kills"] if kill["role"] == role]
    back = sorted(kill["back_s"] for kill in kills if kill["back_s"] is not None)
    spread = (median(back), back[min(len(back) - 1, int(len(back) * 0.95))]) if back else ()
    return {"role": role, "rounds": there, "kills": kills, "back": spread}


def page(lines: Sequence[Line], wanted: tuple[int, int], seed: int, made_on: str, version: str) -> str:
    """The whole page; ``wanted``: kills under shipped settings, and with short waits."""
    trainers = [line for line in lines if line["what"] == "tiny" and "same" in line]
    bad = [{**line, "wrong": wrong(line), "again": done_again(line, lines)} for line in lines if wrong(line)]
    return render(
        "crash_page.md.jinja",
        FOLDER,
        lines=lines,
        bad=bad,
        shipped=_settings("shipped", lines, wanted[0]),
        short=_settings("round", lines, wanted[1]),
        trainers=trainers,
        trainer={"kills": _kills(trainers), "same": all(line["same"] for line in trainers)},
        leaders=_leaders([line for line in lines if line["what"] == "cluster" and "silences" in line]),
        seed=seed,
        made_on=made_on,
        version=version,
    )


def _kills(lines: Sequence[Line]) -> list[Line]:
    return [kill for line in lines for kill in line.get("kills", ())]


def _settings(what: str, lines: Sequence[Line], wanted: int) -> Line:
    """What was measured in the rounds ``what``, of which ``wanted`` kills are to be made."""
    own = [line for line in lines if line["what"] == what]
    ended = [line for line in own if "failed" not in line]
    return {
        "lines": own,
        "kills": _kills(own),
        "table": table(lines, what),
        "wanted": wanted,
        "ended": ended,
        "attempts": sum(line.get("attempts", 0) for line in ended),
        "minutes": _minutes(own),
        "at_once": max((sum(_goes_on(line, one["begun"]) for line in own) for one in own), default=0),
        "load": median([line["load"] for line in own]) if own else 0.0,
    }


def _goes_on(line: Line, moment: float) -> bool:
    return bool(line["begun"] <= moment < line["begun"] + line["seconds"])


def _minutes(lines: Sequence[Line]) -> float:
    """Of the time in which at least one of ``lines`` was made."""
    total, until = 0.0, 0.0
    for line in sorted(lines, key=lambda line: float(line["begun"])):
        end = line["begun"] + line["seconds"]
        total += max(0.0, end - max(until, line["begun"]))
        until = max(until, end)
    return total / 60


def _leaders(lines: Sequence[Line]) -> Line:
    silences = [silence for line in lines for silence in line["silences"]]
    totals = {name: sum(line[name] for line in lines) for name in ("acknowledged", "missing", "twice")}
    return {"silences": silences, "wait": median(silences or [0.0]), **totals}


def done_again(line: Line, lines: Sequence[Line]) -> bool:
    """Whether what broke off came to an end under other code."""
    same = [one for one in lines if (one["what"], one.get("number", 0)) == (line["what"], line.get("number", 0))]
    return "failed" in line and any("failed" not in one and one.get("code") != line.get("code") for one in same)
