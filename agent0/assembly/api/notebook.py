"""Part of the rim: `%load_ext agent0`: live curves and transcripts of runs in a notebook."""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from agent0.assembly.api.calls import Background
from agent0.assembly.api.handles import DRAWN, RunHandle
from agent0.assembly.api.servers import connect
from agent0.assembly.api.transports import CHANGES, ENDS
from agent0.errors import Agent0Error, ConfigError, escaped
from agent0.events.base import Recorded
from agent0.events.tasks import ResultVerified, TaskAccepted, TaskAttempted
from agent0.projections.base import Row
from agent0.report.columns import shown_iteration
from agent0.state.run_state import first_student

SCRIPT = Path(__file__).with_name("notebook.js")
READ = ",".join(("TaskAccepted", "TaskAttempted", "ResultVerified", *CHANGES))
LISTED, LONGEST = 200, 20_000
"""Attempts that a transcript's menu has, the newest, and characters of a turn."""
USAGE = "%agent0 curve RUN, or %agent0 transcript RUN [ATTEMPT]: RUN is a handle, or a run of http://127.0.0.1:8650"


def load_ipython_extension(shell: Any) -> None:
    """Show runs as live curves in the notebook of ``shell``, and give it the magic `%agent0`.

    Raises:
        UsageError: anywidget is not installed; IPython shows it as one line.
    """
    try:
        import_module("anywidget")
    except ModuleNotFoundError:
        raise _line("agent0's widgets need anywidget: pip install 'agent0-train[jupyter]'") from None
    shell.display_formatter.ipython_display_formatter.for_type(RunHandle, lambda run: _display(live_curve(run)))
    shell.register_magic_function(lambda line: _magic(shell, line), "line", "agent0")


def live_curve(run: RunHandle) -> Any:
    """Make a widget of the learning curve of ``run``, drawn anew with every score until the run is over."""
    widget = _widget("curve")
    widget.state = curve_state(run.overview())

    async def take(part: Sequence[Recorded]) -> None:
        if part:
            widget.state = curve_state(await run.aio.overview())

    _follow(widget, run, f"{DRAWN},{','.join(ENDS)}", take)
    return widget


def live_transcript(run: RunHandle, attempt: str = "") -> Any:
    """Make a widget of the attempts of ``run``: the newest, or the ``attempt`` that is chosen, turn by turn."""
    widget, record = _widget("transcript"), AttemptRecord(run.id)
    widget.attempt = attempt

    async def take(part: Sequence[Recorded]) -> None:
        record.add(part)
        widget.state = record.state(widget.attempt)

    widget.observe(lambda _: setattr(widget, "state", record.state(widget.attempt)), "attempt")
    widget.state = record.state(attempt)
    _follow(widget, run, READ, take)
    return widget


def curve_state(overview: Row) -> Row:
    """What the curve's widget shows of an ``overview`` of a run: points from 0 to 1 with their intervals."""
    start = first_student(overview["student_adapter"])
    points = [
        {
            "x": str(shown_iteration(point["iteration"], start)),
            "y": point["validation"],
            "low": point["lower95"],
            "high": point["upper95"],
            "promoted": point["promoted"] != 0,
        }
        for point in overview["shared"] + overview["validation"]
    ]
    tests = [{"x": str(s["checkpoint"]), "y": s["accuracy"]} for s in overview["test"] if not s["forced_tool"]]
    note = f"profile {overview['profile']}, seed {overview['seed']}"
    return {"run": overview["run"], "status": overview["status"], "note": note, "points": points, "tests": tests}


class AttemptRecord:
    """The attempts of a run, oldest first, gathered from its events."""

    def __init__(self, run: str) -> None:
        self._run, self._status = run, ""
        self._questions: dict[str, str] = {}
        self._attempts: dict[str, TaskAttempted] = {}
        self._verdicts: dict[str, ResultVerified] = {}

    def add(self, events: Iterable[Recorded]) -> None:
        """Take in ``events``, each once, in their order."""
        for recorded in events:
            self._status = CHANGES.get(recorded.type, self._status)
            match recorded.event:
                case TaskAccepted() as accepted:
                    self._questions[accepted.task] = accepted.proposal.question
                case TaskAttempted() as attempted:
                    self._attempts[attempted.attempt] = attempted
                case ResultVerified() as verdict:
                    self._verdicts[verdict.attempt] = verdict

    def state(self, chosen: str) -> Row:
        """What the transcript's widget shows: a menu, and the ``chosen`` attempt, or the newest."""
        names = list(self._attempts)
        listed = [{"id": name, "verdict": self._verdict(name)} for name in names[: -LISTED - 1 : -1]]
        state: Row = {"run": self._run, "status": self._status, "attempts": listed, "chosen": chosen}
        name = chosen or (names[-1] if names else "")
        attempted = self._attempts.get(name)
        if attempted is None:
            return state | {"note": f"There is no attempt {escaped(chosen)} yet." if chosen else "No attempt yet."}
        turns = [
            {"who": escaped(f"{turn.role} {turn.name}".strip()), "text": _text(turn.content)}
            for turn in attempted.transcript
        ]
        if not turns and attempted.transcript_artifact:
            turns = [{"who": "", "text": f"It is too long for here: agent0 trajectory show {self._run} {name}"}]
        question = _text(self._questions.get(attempted.task, ""))
        answer = None if attempted.answer is None else _text(attempted.answer)
        return state | {"question": question, "turns": turns, "answer": answer, "verdict": self._verdict(name)}

    def _verdict(self, attempt: str) -> str:
        verdict = self._verdicts.get(attempt)
        return {True: "right", False: "wrong", None: "undecided"}[verdict.correct] if verdict else "not judged yet"


def _text(text: str) -> str:
    return escaped(text if len(text) <= LONGEST else f"{text[:LONGEST]} …")


def _widget(kind: str) -> Any:
    """A widget of ``SCRIPT``: a class of anywidget, which is there once the extension is loaded."""
    unicode, dictionary = (getattr(import_module("traitlets"), name) for name in ("Unicode", "Dict"))
    traits = {"kind": unicode(kind), "state": dictionary(), "attempt": unicode("")}
    fields = {name: trait.tag(sync=True) for name, trait in traits.items()}
    base = import_module("anywidget").AnyWidget
    return type("RunWidget", (base,), {"_esm": SCRIPT.read_text(encoding="utf-8"), **fields})()


def _follow(
    widget: Any, run: RunHandle, types: str, take: Callable[[Sequence[Recorded]], Coroutine[Any, Any, None]]
) -> None:
    """Have ``take`` get the events of ``run`` beside the notebook; what ends that stands in the widget."""

    async def follow() -> None:
        try:
            async for part in run.aio.parts(types, follow=True):
                await take(part)
        except Agent0Error as error:
            widget.state = {**widget.state, "problem": str(error)}

    Background(follow).start()


def _magic(shell: Any, line: str) -> None:
    try:
        kind, name, attempt = [*line.split(), "", ""][:3] if line.strip() else ("", "", "")
        if kind not in ("curve", "transcript") or len(line.split()) > 3:
            raise ConfigError(f"There is no %agent0 {line.strip()[:80]}".rstrip() + ".", fix=USAGE)
        handle = shell.user_ns.get(name)
        run = handle if isinstance(handle, RunHandle) else connect().run(name or "LAST")
        _display(live_curve(run) if kind == "curve" else live_transcript(run, attempt))
    except Agent0Error as error:
        raise _line(str(error)) from None


def _display(widget: Any) -> None:
    import_module("IPython.display").display(widget)


def _line(message: str) -> Exception:
    """An error that IPython shows as one line without a traceback."""
    error: Exception = import_module("IPython.core.error").UsageError(" ".join(message.split()))
    return error
