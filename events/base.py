"""The envelope, the registry of event classes, deterministic ids and upcasting.

An ``Event`` says what happened; ``Recorded`` says where, when and because of what. Nothing here touches a server.
"""

import hashlib
import json
import re
import time as _time
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

TOKEN = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""A subject token: made by us, never text of a model or a user."""

_REVISION = re.compile(r"[A-Za-z0-9.+-]{1,64}")

NAMESPACE = uuid.UUID("6f1d7c5e-9a0e-5c55-8f0a-a0e0e5a0e0a0")

_types: dict[str, type["Event"]] = {}
Upcast = Callable[[dict[str, Any]], dict[str, Any]]
_upcasters: dict[tuple[str, int], Upcast] = {}


class EarlierVersionError(ValueError):
    """An event of a version that nothing lifts to the present one."""


class NewerEventError(ValueError):
    """An event of a kind, version or field that is not known here. ``writer``: the version of Agent0 that wrote it,
    empty where it does not say."""

    def __init__(self, what: str, raw: dict[str, Any], seq: int) -> None:
        writer = raw.get("code_rev")
        self.writer = writer if isinstance(writer, str) and _REVISION.fullmatch(writer) else ""
        self.seq = seq
        by = f" (by {self.writer})" if self.writer else ""
        super().__init__(f"{what}: was the log written by a newer Agent0?{by}")


class Value(BaseModel):
    """Base of immutable values inside events: frozen, unknown fields are errors."""

    # a loss that is no number is a fact too: null would make its event unreadable
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class Event(Value):
    """One fact. Subclassing registers it under its class name, which alone decides type and subject.

    Events never inherit from one another: a child would match its parent's ``case``.
    ``task`` and ``attempt``, where a class has them, are its subject tokens.
    """

    version: ClassVar[int] = 1

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        if cls.__bases__ != (Event,):
            raise TypeError(f"{cls.__name__} must derive from Event and from nothing else")
        if cls.__name__ in _types and _types[cls.__name__].__module__ != cls.__module__:
            raise TypeError(f"two events are named {cls.__name__}")
        _types[cls.__name__] = cls


class Recorded(Value):
    """An event with its place in the log.

    ``seq`` is the stream sequence: 0 until the log has stored it. ``cause`` is the id of the event reacted to and
    ``handler`` the reaction's name; both are empty for an event a person or the command line wrote.
    """

    id: str
    type: str
    version: int = 1
    run: str
    task: str = "-"
    attempt: str = "-"
    time: datetime
    cause: str = ""
    handler: str = ""
    code_rev: str = ""
    event: Event = Field(exclude=True)
    seq: int = Field(default=0, exclude=True)

    @property
    def subject(self) -> str:
        """``a0.ev.<run>.<task>.<attempt>.<ClassName>``: a run, a task and an attempt are one wildcard each."""
        return f"a0.ev.{self.run}.{self.task}.{self.attempt}.{self.type}"

    def to_json(self) -> bytes:
        """The stored body: the envelope with the payload under ``data``."""
        head = self.model_dump_json()
        return f'{head[:-1]},"data":{self.event.model_dump_json()}}}'.encode()


def record(
    event: Event, *, run: str, time: datetime, id: str = "", cause: str = "", handler: str = "", code_rev: str = ""
) -> Recorded:
    """Wrap ``event`` for storage.

    Raises:
        ValueError: a token that may not be part of a subject.
    """
    task, attempt = getattr(event, "task", "") or "-", getattr(event, "attempt", "") or "-"
    for token in (run, task, attempt):
        if not TOKEN.fullmatch(token):
            raise ValueError(f"{token!r} is no valid id: letters, digits, '_' and '-', at most 64")
    return Recorded(
        id=id or new_id(),
        type=type(event).__name__,
        version=event.version,
        run=run,
        task=task,
        attempt=attempt,
        time=time,
        cause=cause,
        handler=handler,
        code_rev=code_rev,
        event=event,
    )


def decode(body: bytes | str | dict[str, Any], seq: int = 0) -> Recorded:
    """Read a stored body, upcasting older versions.

    Raises:
        EarlierVersionError: a version that has no upcaster: it was written before 0.1.0.
        NewerEventError: an unknown type or field, or a newer version.
        ValueError: not JSON, or fields that do not fit (pydantic's error is one); those above are some, too.
    """
    raw = body if isinstance(body, dict) else _loads(body)
    kind = raw.get("type")
    if not isinstance(kind, str):
        raise ValueError("it names no event type")
    cls = _types.get(kind)
    if cls is None:
        raise NewerEventError(f"unknown event type {kind[:80]!r}", raw, seq)
    data = _lifted(cls, raw, seq)
    try:
        whole = {**raw, "version": cls.version, "event": cls.model_validate(data), "seq": seq}
        del whole["data"]
        return Recorded.model_validate(whole)
    except ValidationError as error:
        if fields := _unknown_fields(error):
            raise NewerEventError(f"{kind} has the unknown field {fields}", raw, seq) from error
        raise


def _lifted(cls: type[Event], raw: dict[str, Any], seq: int) -> dict[str, Any]:
    """The data of ``raw`` as of the present version of ``cls``; errors as for ``decode``."""
    kind, data, version = cls.__name__, raw.get("data"), raw.get("version", 1)
    if not isinstance(data, dict) or not isinstance(version, int):
        raise ValueError(f"{kind} has no data")
    while version < cls.version:
        if (lift := _upcasters.get((kind, version))) is None:
            raise EarlierVersionError(f"{kind} version {version} was written before 0.1.0, which nothing reads")
        data, version = lift(data), version + 1
    if version > cls.version:
        raise NewerEventError(f"{kind} version {version} is newer than this Agent0 reads ({cls.version})", raw, seq)
    return data


def _unknown_fields(error: ValidationError) -> str:
    """The fields that are not known, where nothing else is wrong."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    if any(problem["type"] != "extra_forbidden" for problem in problems):
        return ""
    return ", ".join(".".join(str(step) for step in problem["loc"]) for problem in problems)[:200]


def subject_of(body: bytes) -> str:
    """The ``Recorded.subject`` of the event in a stored body, which is not decoded for it.

    Raises:
        ValueError: it is none.
    """
    raw = {"task": "-", "attempt": "-", **_loads(body)}
    return "a0.ev.{run}.{task}.{attempt}.{type}".format_map({"run": "", "type": "", **raw})


def require_subject(own: str, subject: str = "") -> None:
    """Refuse an event whose ``own`` subject is not the one that it was stored under: rights of a role are by subject.

    Raises:
        ValueError: it is another; an empty one says nothing.
    """
    if subject and own != subject:
        raise ValueError(f"{own.rpartition('.')[2]} was published as {subject}")


def upcaster(kind: str, version: int) -> Callable[[Upcast], Upcast]:
    """Register ``fn(data) -> data`` that lifts ``kind`` from ``version`` to ``version + 1``."""

    def register(fn: Upcast) -> Upcast:
        _upcasters[kind, version] = fn
        return fn

    return register


def event_types() -> dict[str, type[Event]]:
    """Every event class by name, in the order of definition."""
    return dict(_types)


def effect_id(cause: str, handler: str, n: int) -> str:
    """The id of the n-th effect of ``handler``'s reaction to ``cause``: the same on every redelivery."""
    return str(uuid.uuid5(NAMESPACE, f"{cause}/{handler}/{n}"))


def new_id() -> str:
    """A time-ordered id (UUIDv7) for an event that no reaction caused."""
    stamp = int(_time.time() * 1000) & ((1 << 48) - 1)
    tail = uuid.uuid4().int & ((1 << 74) - 1)
    value = stamp << 80 | 0x7 << 76 | (tail >> 62) << 64 | 0b10 << 62 | tail & ((1 << 62) - 1)
    return str(uuid.UUID(int=value))


def sha256(data: bytes | str) -> str:
    """The sha256 of ``data`` (text as UTF-8) as hex digits."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def _loads_deep(body: bytes | str) -> Any:
    """The standard library's reading, which goes deeper and says what is wrong in its own words."""
    try:
        return json.loads(body)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _loads(body: bytes | str) -> dict[str, Any]:
    try:
        raw = from_json(body)  # three times as fast as the standard library's
    except ValueError:
        raw = _loads_deep(body)
    if not isinstance(raw, dict):
        raise ValueError("a stored event is a JSON object")
    return raw


TRACE_HEADER = "traceparent"
"""Header of a message of the log: whoever consumes it and makes spans of its own joins the attempt's trace."""
_VERSION, _SAMPLED = "00", "01"


def trace_of(run: str, task: str, attempt: str) -> tuple[str, str]:
    """The ids of an attempt's trace (16 bytes) and of its first span (8 bytes), in hex, as the W3C recommends trace
    context. They follow from ids of the log, so every process names them alike."""
    digest = sha256("/".join((run, task, attempt)))
    return digest[:32], digest[32:48]


def traceparent(run: str, task: str, attempt: str) -> str:
    """The value of ``TRACE_HEADER`` for an event of an attempt."""
    return "-".join((_VERSION, *trace_of(run, task, attempt), _SAMPLED))
