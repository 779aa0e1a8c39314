"""Part of the rim: a data folder as an object: its runs, and everything that the command line does with them."""

import sqlite3
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from agent0.assembly.ablations.study import run_study
from agent0.assembly.api.arguments import checked, checked_methods
from agent0.assembly.api.calls import Say, Settable, run_sync, texts
from agent0.assembly.api.handles import AsyncRuns, RunHandle
from agent0.assembly.api.local_runs import LocalTransport, execute, execution
from agent0.assembly.api.rows import Rows, html_table
from agent0.assembly.api.runs import Run
from agent0.assembly.api.studies import Study, requested
from agent0.assembly.api.transports import Questions, StartOrder, Transport
from agent0.assembly.log.access import open_log
from agent0.assembly.models.warm_start import warm_start
from agent0.assembly.replay.compare_runs import gather_different
from agent0.assembly.replay.forks import fork, roles_of
from agent0.assembly.replay.rescore import Rescore, rescore_run
from agent0.assembly.replay.retrain import Retrain, Retrained, retrain
from agent0.assembly.replay.tables_at import known_tables
from agent0.assembly.runtime.app import started
from agent0.assembly.runtime.execution import prepared, resumption
from agent0.assembly.runtime.plugins import of_session, with_plugin_files
from agent0.assembly.runtime.progress import followed
from agent0.assembly.runtime.read_models import live_path, reading, refresh
from agent0.assembly.validate.rewards import reward_policy
from agent0.config.loading import load
from agent0.errors import OperationError
from agent0.events.base import Recorded
from agent0.experiments.compare_runs import RunComparison, side_by_side
from agent0.infra.log.event_log import Log
from agent0.infra.storage.row_formats import stored_rows
from agent0.infra.storage.sqlite import guarded_query
from agent0.projections.base import find
from agent0.projections.model_usage import model_stats
from agent0.projections.runs import RunFilter, list_runs, resolve
from agent0.settings import Settings

Plugins = Iterable[str | Path]
T = TypeVar("T")


@checked
def open(
    home: str | Path | None = None,
    *,
    profile: str | None = None,
    settings: Mapping[str, object] = {},
    plugins: Plugins = (),
    read_only: bool = False,
) -> "Folder":
    """Open a data folder: ``home``, else AGENT0_HOME or the user's. It need not be there yet.

    Args:
        home: the folder.
        profile: what runs start with, unless they name another; tiny, scripted, or the path of a .toml file.
        settings: other settings, by dotted key.
        plugins: Python files with rewards, verifiers, tools or families of yours.
        read_only: read the tables as they are; start no server, write nothing, refuse what would.

    Raises:
        ConfigError: a setting, profile or plugin that cannot be.
    """
    folder = Folder(profile, {**settings, **({"home": str(home)} if home else {})}, plugins, read_only=read_only)
    folder.refresh()
    return folder


@checked_methods
class Folder:
    """A data folder. Tables are caught up with the log when it is opened, by ``refresh``, and at the end of what runs
    here."""

    def __init__(
        self, profile: str | None, values: Settable, plugins: Plugins = (), *, read_only: bool = False
    ) -> None:
        self._profile, self.read_only = profile, read_only
        files = [str(Path(path).absolute()) for path in plugins]
        self._given = texts({**values, **({"plugins": files} if files else {})})
        self.settings = self._settings()
        self.transport: Transport = LocalTransport(self)

    @property
    def aio(self) -> AsyncRuns:
        """Its runs as coroutines: to start them and to hold them."""
        return AsyncRuns(self.transport)

    def __repr__(self) -> str:
        return f"Folder({str(self.settings.home)!r}{', read only' if self.read_only else ''})"

    def _settings(self, profile: str | None = None, more: Mapping[str, object] = {}) -> Settings:
        return with_plugin_files(load(profile or self._profile, {**self._given, **texts(more)}))

    @contextmanager
    def tables(self) -> Iterator[sqlite3.Connection]:
        """A read-only connection to the tables.

        Raises:
            NotFoundError: there are none yet.
        """
        with reading(self.settings) as db:
            yield db

    def refresh(self) -> None:
        """Catch the tables up with the log; warns where it cannot be reached. A read-only folder stays as it is."""
        if not self.read_only and (warning := run_sync(lambda: refresh(self.settings))):
            warnings.warn(warning, stacklevel=3)

    def runs(
        self,
        *,
        tag: str = "",
        profile: str | None = None,
        status: str = "",
        text: str = "",
        forks: bool = False,
        hidden: bool = False,
    ) -> list[Run]:
        """Its runs, newest first, filtered as by ``AsyncRuns.runs``."""
        chosen = RunFilter(tag, profile or "", status, text)
        return [Run(self, run) for run in run_sync(lambda: self.transport.runs(chosen, hidden=hidden, forks=forks))]

    def run(self, name: str = "LAST") -> Run:
        """The run of this id; the newest for LAST.

        Raises:
            NotFoundError: there is none.
        """
        with self.tables() as db:
            return Run(self, resolve(db, name))

    def table(self, name: str, run: str = "") -> Rows:
        """The rows of a table (`agent0 projections list`), of one run where named: id, unique beginning, name, LAST.

        Raises:
            NotFoundError: there is no such table, or no such run.
        """
        definition = known_tables((name,))[name]
        flags = [column for column, kind in definition.columns.items() if kind is bool]
        query, order = f"SELECT * FROM {name}", ", ".join(definition.key)  # noqa: S608 - a declared name
        with self.tables() as db:
            rows = find(db, query, {"run": run} if run else {}, order)
            if run and not rows and (named := resolve(db, run)) != run:  # an id that is no run's: an experiment's
                rows = find(db, query, {"run": named}, order)
        for row in rows:
            row |= {flag: bool(row[flag]) for flag in flags if row[flag] is not None}
        return Rows(rows)

    def query(self, sql: str, *, limit: int = 1000) -> Rows:
        """The rows that one SELECT over the tables gives.

        Raises:
            ConfigError: it is no such query, or it takes too long.
        """
        return Rows(guarded_query(live_path(self.settings), sql, max_rows=limit))

    def router_stats(self, *by: str, run: str = "") -> Rows:
        """Calls of remote models by ``by`` (model, role, domain, day; none: model), of one run where named, as
        `agent0 router stats --json` prints them: latency, tokens, cost, errors, savings, escalations.

        Raises:
            ConfigError: nothing is counted by that. NotFoundError: there is no such run.
        """
        with self.tables() as db:
            return Rows(model_stats(db, by or ("model",), resolve(db, run) if run else ""))

    def start(
        self,
        profile: str | None = None,
        settings: Mapping[str, object] = {},
        *,
        name: str = "",
        plugins: Plugins = (),
        questions: Questions | None = None,
        heldout: Questions | None = None,
        documents: str | Path | None = None,
        adapter: str | Path | None = None,
        say: Say | None = None,
        wait: bool = True,
    ) -> Run:
        """Start a run and execute it to its end, as `agent0 run start` does. Ctrl-C pauses it.

        Args:
            profile: its profile; the folder's by default.
            settings: others than the profile's, by dotted key.
            name: a name for people.
            plugins: Python files with rewards, verifiers, tools or families of yours.
            questions: a file of questions with answers, or the rows themselves, which are stored in the folder.
            heldout: the held-out ones, likewise.
            documents: a folder of text files that the teacher writes questions about.
            adapter: a folder with a LoRA that peft saved, which its student begins with.
            say: takes lines about how it goes.
            wait: False returns once it has begun: a thread executes it, and pauses it when this process ends.

        Raises:
            ConfigError: settings that do not fit together, or rows that are none.
            RequirementsError: something is missing.
        """
        self.require_writable("start a run")
        files = [str(Path(path).absolute()) for path in plugins]
        rows = {"run.questions.file": questions, "run.questions.heldout": heldout}
        stored = {key: str(stored_rows(self.settings.home, each)) for key, each in rows.items() if each is not None}
        stored |= {"run.documents.folder": str(documents)} if documents else {}
        chosen = self._settings(profile, {**settings, **stored, **({"plugins": files} if files else {})})
        checked = run_sync(lambda: prepared(chosen, tell=say or (lambda _: None)))
        return self._execute(checked, started(checked, name, warm_start(checked, adapter)), say, wait=wait)

    def resume(self, run: Run | str = "LAST", *, say: Say | None = None, wait: bool = True) -> Run:
        """Go on with a run that was paused or has failed, to its end, or, without ``wait``, in a thread; a finished one
        is returned as it is.

        Raises:
            OperationError: it was cancelled.
        """
        self.require_writable("resume a run")
        self.refresh()
        chosen = self._named(run)
        row, executing = chosen.row, execution(self.settings, chosen.id)
        if row["status"] == "finished":
            return chosen
        if executing is not None and not executing.ended.done():
            return RunHandle.resume(chosen, wait=wait)
        return self._execute(self.settings, resumption(self.settings, row), say, chosen.id, wait=wait)

    def fork(
        self,
        run: Run | str = "LAST",
        at: int = 0,
        settings: Mapping[str, object] = {},
        *,
        name: str = "",
        say: Say | None = None,
        wait: bool = True,
    ) -> Run:
        """Start a run in the middle of another, as of the event ``at`` (0: its end), under other ``settings``, and
        execute it to its end, or, without ``wait``, in a thread.

        Raises:
            NotFoundError: no such run or event.
            ConfigError: a setting that does not fit.
        """
        self.require_writable("fork a run")
        source = self._named(run).id

        async def begun() -> Recorded:
            async with open_log(self.settings) as log:
                return await fork(self.settings, log, source, at, texts(settings), name)

        return self._execute(self.settings, run_sync(begun), say, wait=wait)

    def begin(self, start: StartOrder) -> str:
        """Start a run as ``start`` does and return its id at once."""
        more: dict[str, Any] = {name: getattr(start, name) for name in ("questions", "heldout", "documents", "adapter")}
        return self.start(start.profile, start.settings, name=start.name, **more, wait=False).id

    def begin_fork(self, run: str, at: int, settings: Mapping[str, object], name: str) -> str:
        """Start a run as ``fork`` does and return its id at once."""
        return self.fork(run, at, settings, name=name, wait=False).id

    def begin_again(self, run: str) -> None:
        """Go on with a run as ``resume`` does and return at once."""
        self.resume(run, wait=False)

    def rescore(
        self,
        run: Run | str = "LAST",
        rewards: str = "as-run",
        settings: Mapping[str, object] = {},
        *,
        verdicts: str = "",
        name: str = "",
    ) -> dict[str, Any]:
        """Recompute all rewards of a run under a set or a file of rules, with ``settings`` of ``run.rewards``; what
        changes, as `agent0 experiment rescore --json` prints it. It is written down where it has a ``name``.

        Raises:
            ConfigError: rules that cannot be.
        """
        self.require_writable("rescore a run")
        policy, source = reward_policy(rewards), self._named(run).id
        request = Rescore(source, name or "look", policy, verdicts, bool(name), texts(settings))
        return self._refreshed(run_sync(lambda: rescore_run(self.settings, request)))

    def retrain(
        self,
        source: Run | str,
        name: str,
        settings: Mapping[str, object] = {},
        *,
        without: Sequence[str] = (),
        roles: str = "student",
        evaluate: bool = True,
        say: Say | None = None,
    ) -> Retrained:
        """Train the checkpoints of a run or an experiment again from what is stored, with another recipe, or
        ``without`` some tasks. The experiment is called ``name``.

        Raises:
            NotFoundError: no such run, experiment or task.
        """
        self.require_writable("train again")
        of = self._named(source).id if isinstance(source, Run) or source == "LAST" else source
        request = Retrain(of, name, texts(settings), tuple(without), roles_of(roles), evaluate)
        return self._refreshed(run_sync(lambda: retrain(self.settings, request, say or (lambda _: None))))

    def compare(self, *names: Run | str) -> RunComparison:
        """Runs and experiments side by side, the first being the measure: rewards, held-out curves with paired tests,
        what changed sides, cost; as `agent0 experiment compare --json` prints it.

        Raises:
            ConfigError: fewer than two different ones.
        """
        self.require_writable("compare runs")
        chosen = [self._named(run).id if isinstance(run, Run) or run == "LAST" else run for run in names]
        return side_by_side(run_sync(lambda: gather_different(self.settings, chosen)))

    def ablation(
        self,
        variants: Mapping[str, Settable] | str | Path,
        seeds: Iterable[int] | None = None,
        *,
        only: Sequence[str] = (),
        profile: str | None = None,
        settings: Mapping[str, object] = {},
        name: str = "",
        jobs: int = 1,
        say: Say | None = None,
    ) -> Study:
        """Run ``variants`` over seeds, as `agent0 experiment ablation` does; the same call goes on where it stopped.

        Args:
            variants: name -> settings, the first being the baseline; or the path of a study file.
            seeds: the file's, or 0 to 4, where they are not given.
            only: names of the variants that are run, where not all are.

        Raises:
            ConfigError: variants or seeds that cannot be compared, or a file that is no study.
        """
        self.require_writable("run a study")
        overrides = {**self._given, **texts(settings)}
        seeds = None if seeds is None else tuple(seeds)
        request = requested(variants, overrides, self._profile, seeds, only=only, profile=profile, name=name, jobs=jobs)
        loaded = with_plugin_files(load(request.profile, request.typed))
        return Study(run_sync(lambda: run_study(loaded, request, say or (lambda _: None))))

    def _execute(
        self, settings: Settings, begin: Recorded | None, say: Say | None, run: str = "", *, wait: bool = True
    ) -> Run:
        if session_names := of_session():
            warning = f"{', '.join(session_names)}: defined in this program only. Nothing of it is recorded, "
            warning += "no other process has it."
            warnings.warn(f"{warning} Write it into a file, and open the folder with plugins=[FILE].", stacklevel=3)
        name = begin.run if begin else run
        execute(settings, name, begin, _RunFollower(say), wait=wait)
        return Run(self, name)

    def _refreshed(self, summary: T) -> T:
        self.refresh()
        return summary

    def _named(self, run: Run | str) -> Run:
        return run if isinstance(run, Run) else self.run(run)

    def require_writable(self, what: str) -> None:
        """Raises OperationError where it was opened to read; ``what`` is refused then."""
        if self.read_only:
            why = "It was opened to read: no server is started and nothing is written."
            raise OperationError(f"{self!r} cannot {what}.", why, "Open it without read_only=True.")

    def _repr_html_(self) -> str:
        if not self.runs():
            return f"<p>{self!r}: no run yet</p>"
        with self.tables() as db:
            rows = list_runs(db)
        return html_table(
            rows, ("run", "status", "profile", "seed", "iteration", "validation", "heldout_last", "started")
        )


class _RunFollower:
    """Follows a run for ``execute_run``: its lines go to ``say``."""

    def __init__(self, say: Say | None) -> None:
        self._say = say or (lambda _: None)

    def say(self, text: str, *, warning: bool = False) -> None:
        """Take one line."""
        self._say(text)

    async def follow(self, log: Log, run: str) -> Any:
        """Read the events of ``run`` until it is over."""
        return await followed(log, run, self._say)
