"""What the kills came to, as tables and as docs/results/reliability.md."""

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from agent0.report.markdown.rendering import render
from tests.crashing import BROKER, ROLES
from tests.processes import KINDS

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
    """The whole page; ``wanted``: kills, and kills under shipped settings."""
    trainers = [line for line in lines if line["what"] == "tiny" and "same" in line]
    return render(
        "crash_page.md.jinja",
        FOLDER,
        lines=lines,
        bad=sum(bool(wrong(line)) for line in lines),
        round=_settings("round", lines, [line for line in lines if line["what"] != "shipped"], wanted[0]),
        shipped=_settings("shipped", lines, [line for line in lines if line["what"] == "shipped"], wanted[1]),
        trainers=trainers,
        trainer={"kills": _kills(trainers), "same": all(line["same"] for line in trainers)},
        leaders=_leaders([line for line in lines if line["what"] == "cluster" and "silences" in line]),
        processes=KINDS,
        broker=BROKER,
        seed=seed,
        made_on=made_on,
        version=version,
    )


def with_shipped(text: str, lines: Sequence[Line], wanted: int, seed: int, made_on: str, version: str) -> str:
    """The page ``text`` with its answer and its part about the shipped settings made anew, and nothing else."""
    made_anew = page(lines, (0, wanted), seed, made_on, version)
    for part in (r"^- .*shipped settings.*$", r"^## With the shipped settings\n(?s:.*?)(?=^## A cluster\n)"):
        (said,) = re.findall(part, made_anew, re.MULTILINE)
        text = re.sub(part, lambda _, said=said: said, text, count=1, flags=re.MULTILINE)
    return text


def _kills(lines: Sequence[Line]) -> list[Line]:
    return [kill for line in lines for kill in line.get("kills", ())]


def _settings(what: str, lines: Sequence[Line], own: Sequence[Line], wanted: int) -> Line:
    """What was measured under the settings of ``what``; ``own`` are all lines that count towards its kills."""
    rounds = [line for line in own if line["what"] == what and line.get("kills")]
    ended = [line for line in own if line["what"] == what and "failed" not in line]
    bad = [line for line in own if wrong(line)]
    return {
        "lines": own,
        "rounds": rounds,
        "kills": _kills(rounds),
        "table": table(lines, what),
        "made": made(own),
        "wanted": wanted,
        "ended": ended,
        "attempts": sum(line.get("attempts", 0) for line in ended),
        "trained": any(line["what"] == "tiny" for line in own),
        "minutes": sum(line["seconds"] for line in own) / 60,
        "load": median([line["load"] for line in own]) if own else 0.0,
        "troubles": [{**line, "wrong": wrong(line), "again": done_again(line, own)} for line in bad],
    }


def _leaders(lines: Sequence[Line]) -> Line:
    silences = [one for line in lines for one in line["silences"]]
    totals = {name: sum(line[name] for line in lines) for name in ("acknowledged", "missing", "twice")}
    return {"silences": silences, "wait": median(silences or [0.0]), **totals}


def done_again(line: Line, lines: Sequence[Line]) -> bool:
    """Whether what broke off came to an end under other code."""
    same = [one for one in lines if (one["what"], one.get("number")) == (line["what"], line.get("number"))]
    return "failed" in line and any("failed" not in one and one.get("code") != line.get("code") for one in same)
