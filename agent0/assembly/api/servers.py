"""Part of the rim: the Python client of a server: its runs as handles, over its HTTP API."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from agent0.assembly.api.arguments import checked, checked_methods
from agent0.assembly.api.calls import run_sync, texts
from agent0.assembly.api.handles import AsyncRun, AsyncRuns, RunHandle
from agent0.assembly.api.rows import html_table
from agent0.assembly.api.transports import Decision, Questions, StartOrder
from agent0.assembly.requests.run_filters import require_status
from agent0.errors import ConfigError, NotFoundError
from agent0.evaluation.benchmarks.rows import read_rows
from agent0.events.base import Recorded, decode
from agent0.infra.storage.datasets import load
from agent0.infra.storage.row_formats import json_rows
from agent0.infra.web.agent0_server import ServerLink, ServerVersionError
from agent0.projections.base import Row
from agent0.projections.runs import RunFilter

PAGE = "1000"


@checked
def connect(url: str = "http://127.0.0.1:8650", key: str = "", *, patience_s: float = 30.0) -> "Server":
    """Name a server that `agent0 up` runs; it is asked at the first use.

    Args:
        url: its address.
        key: one of its keys (`agent0 api key add NAME --scope admin`); it asks for none on its own machine.
        patience_s: seconds that it may be away in the middle of a wait or a stream of events.

    Raises:
        ConfigError: ``url`` is no address, or ``key`` has characters that no key has.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ConfigError(f"{url[:80]!r} is no address of a server.", fix="Write one like http://127.0.0.1:8650")
    if not all("!" <= character <= "~" for character in key):
        why = "A space, a line's end or another alphabet."
        raise ConfigError("The key has characters that no key has.", why, "Copy it again.")
    return Server(ServerLink(url, key, patience_s))


@checked_methods
class Server:
    """A server of Agent0. Its runs are executed there, whatever becomes of this process."""

    def __init__(self, link: ServerLink) -> None:
        self._link, self._transport = link, ServerTransport(link)

    def __repr__(self) -> str:
        return f"Server({self.url!r})"

    @property
    def url(self) -> str:
        """Its address."""
        return self._link.url

    @property
    def aio(self) -> AsyncRuns:
        """Its runs as coroutines: to start them and to hold them."""
        return AsyncRuns(self._transport)

    def start(
        self,
        profile: str | None = None,
        settings: Mapping[str, object] = {},
        *,
        name: str = "",
        questions: Questions | None = None,
        heldout: Questions | None = None,
        documents: str | Path | None = None,
        adapter: str = "",
        wait: bool = True,
    ) -> RunHandle:
        """Start a run, and ``wait`` until it is over or return at once. Ctrl-C ends the waiting, not the run.

        Args:
            profile: its profile, by name; the server's by default.
            settings: others than the profile's, by dotted key.
            name: a name for people.
            questions: a file of questions with answers, or the rows themselves, which are sent.
            heldout: the held-out ones, likewise.
            documents: a folder of documents, as a data folder takes it: refused, as it lies on this machine.
            adapter: a checkpoint that the server has, which its student begins with: RUN/CHECKPOINT, or a digest.
            wait: False returns once the server has begun it.

        Raises:
            ConfigError: settings that do not fit together, rows that are none, or an adapter of another model.
            NotFoundError: no such checkpoint.
            DependencyError: the server does not answer. AuthError: it wants another key.
        """
        order = StartOrder(profile, settings, name, questions, heldout, documents, adapter)
        run = RunHandle(AsyncRun(self._transport, run_sync(lambda: self._transport.start(order))))
        if wait:
            run.wait()
        return run

    def run(self, name: str = "LAST") -> RunHandle:
        """The run of this id; the newest for LAST.

        Raises:
            NotFoundError: there is none.
        """
        return RunHandle(run_sync(lambda: self.aio.run(name)))

    def runs(
        self,
        *,
        tag: str = "",
        profile: str | None = None,
        status: str = "",
        text: str = "",
        forks: bool = False,
        hidden: bool = False,
    ) -> list[RunHandle]:
        """Its runs, newest first, filtered as by ``AsyncRuns.runs``."""
        chosen = {"tag": tag, "profile": profile or "", "status": status, "text": text}
        listed = run_sync(lambda: self._transport.runs(RunFilter(**chosen), hidden=hidden, forks=forks))
        return [RunHandle(AsyncRun(self._transport, run)) for run in listed]

    def _repr_html_(self) -> str:
        rows = run_sync(lambda: self._link.get("/v1/runs"))["data"]
        return html_table(rows, ("run", "status", "profile", "seed", "iteration", "validation", "started"))


class ServerTransport:
    """Carries what is asked of runs to a server; what is decided under the name ``again`` counts once."""

    def __init__(self, link: ServerLink, again: str = "") -> None:
        self._link, self._again = link, again

    async def resolve(self, name: str) -> str:
        """As ``Transport.resolve``."""
        return str((await self.overview(name))["run"])

    async def runs(self, chosen: RunFilter, *, hidden: bool, forks: bool) -> list[str]:
        """As ``Transport.runs``."""
        require_status(chosen.status)
        params = {"tag": chosen.tag, "profile": chosen.profile, "status": chosen.status, "text": chosen.text}
        params |= {"hidden": str(hidden).lower()}
        pages = self._pages("/v1/runs", params)
        return [str(row["run"]) async for page in pages for row in page if row["parent"] or not forks]

    async def overview(self, run: str) -> Row:
        """As ``Transport.overview``."""
        return await self._link.get(_path(run))

    async def metrics(self, run: str) -> Sequence[Row]:
        """As ``Transport.metrics``."""
        rows: list[Row] = (await self._link.get(_path(run, "metrics")))["data"]
        return rows

    async def ledger(self, run: str) -> Sequence[Row]:
        """As ``Transport.ledger``."""
        return [row async for page in self._pages(_path(run, "ledger"), {}) for row in page]

    async def events(
        self, run: str, types: str, task: str, after: int, *, follow: bool
    ) -> AsyncIterator[Sequence[Recorded]]:
        """As ``Transport.events``: pages of what there is, then a stream of what comes."""
        params = {"run": run, "type": types, "task": task}
        async for page in self._pages("/v1/events", {**params, "after": str(after)}):
            if page:
                after = int(page[-1]["seq"])
                yield [_recorded(row) for row in page]
        if follow:
            async for row in self._link.stream(params, after):
                yield [_recorded(row)]

    async def start(self, start: StartOrder) -> str:
        """As ``Transport.start``."""
        if start.documents:
            fix = "Name one that it has, settings={'run.documents.folder': …}, or start it here: agent0.open().start(…)"
            why = "A request carries no files."
            raise ConfigError(f"A server starts no run from a folder of documents ({start.documents}).", why, fix)
        if start.adapter and Path(start.adapter).is_dir():
            fix = "Name a checkpoint that it has, RUN/CHECKPOINT, or start it there: agent0.open().start(…)"
            why = "A request carries no files."
            raise ConfigError(f"A server starts no run from an adapter in a folder ({start.adapter}).", why, fix)
        body: Row = {"name": start.name, "profile": start.profile or "", "settings": texts(start.settings)}
        body |= {"adapter": str(start.adapter)} if start.adapter else {}
        for key, rows in (("questions", start.questions), ("heldout", start.heldout)):
            if rows is not None:
                body[key] = await asyncio.to_thread(_rows, rows)
        return str((await self._link.post("/v1/runs", body, self._again))["run"])

    async def fork(self, run: str, at: int, settings: Mapping[str, object], name: str) -> str:
        """As ``Transport.fork``."""
        body = {"at": int(at), "settings": texts(settings), "name": name}
        return str((await self._link.post(_path(run, "forks"), body, self._again))["run"])

    async def decide(self, run: str, decision: Decision, reason: str) -> None:
        """As ``Transport.decide``."""
        await self._link.post(_path(run, decision), {"reason": reason}, self._again)

    async def conclude(self, run: str, last: Recorded) -> None:
        """As ``Transport.conclude``: the server's own processes see to it."""

    async def _pages(self, path: str, params: dict[str, str]) -> AsyncIterator[list[Row]]:
        after = params.get("after", "")
        while after is not None:
            answer = await self._link.get(path, {**params, "limit": PAGE, **({"after": after} if after else {})})
            yield answer["data"]
            after = answer["next"]


def _path(run: str, *more: str) -> str:
    if "/" in run or not run.strip("."):
        raise NotFoundError(f"There is no run {run[:80]!r}.", "An id is letters, digits, '_' and '-'.")
    return "/".join(("/v1/runs", quote(run, safe=""), *more))


def _recorded(row: Row) -> Recorded:
    """The event of a ``row`` of the API.

    Raises:
        ServerVersionError: it is none that this version knows.
    """
    body: dict[str, Any] = {name: value for name, value in row.items() if name not in ("seq", "text")}
    try:
        return decode(body, row["seq"])
    except ValueError as error:
        why = f"Its event {row['seq']} cannot be read: {error}."
        fix = "Update this client: pip install -U agent0-train"
        raise ServerVersionError("The server is newer than this client.", why, fix) from error


def _rows(questions: Questions) -> list[Mapping[str, object]]:
    """The rows of ``questions`` as they are sent.

    Raises:
        ConfigError: a file that cannot be read; the row is named.
    """
    if not isinstance(questions, str | Path):
        return [json.loads(row) for row in json_rows(questions)]
    data = load(Path(questions).expanduser())
    return [json.loads(row) for row in json_rows(row for _, row in read_rows(data.text, data.name))]
