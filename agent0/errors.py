"""The tree of Agent0's errors. ``kind`` alone decides exit code, status of HTTP, retry and metric label.

Agent0Error
├── ConfigError              2  settings, flags or ids that a user gave are wrong
│   ├── UnknownPriceError       nobody knows what a call costs, and a budget is capped
│   └── RewardError             a reward gives what is no finite number
├── NotFoundError            1  a run, task or event does not exist
├── OperationError           1  the requested operation cannot be done
│   ├── RefusedError            a model was not asked, or its server refused before a word was written: it is free
│   └── UsageError              a provider's count of tokens is missing or cannot be
├── GateError                3  a requested check failed
├── RunFailedError           6  the run ended without what it was for
├── AuthError                4  credentials are missing or refused
├── DependencyError          5  a server, model, sandbox or disk is unavailable (retryable: uses up no deliveries)
│   ├── SandboxUnavailableError
│   ├── NotSentError            nothing was sent to a server, so it cannot have cost anything
│   │   └── ServerBusyError     a server takes no request now, and may say for how long
│   ├── ModelChangedError       a server serves another model than it did before in the same run
│   ├── OtherServerError        what answers at a model server's address is a server of another kind
│   └── BudgetExhaustedError    a call may cost more than a budget has left; the run goes on when its cap is raised
├── RequirementsError        5  a run needs what is not here; it has not begun
├── LogError                 1  the log refuses, drifted or was altered
└── TransientError           1  another try may succeed (uses up a delivery)
"""

import re
import unicodedata
from enum import Enum

REPLACEMENT = "\ufffd"
_ENDED = re.compile(r"[.!?…:][)\"'`]?$")
"""How a text ends that needs no full stop."""
_DOUBLED = re.compile(r"(?<!\.)\.\.$")
_CREDENTIALS = re.compile(r"(?<=://)(?:(?:(?!://)[^\s@])*@)+")
_OBEYED = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Controls, format characters (direction marks, joiners), halves of pairs, private ones, separators of lines."""


class ErrorKind(Enum):
    """The kind of an error: slug for metrics and APIs, exit code of the CLI, whether a retry can help, status of an
    HTTP response."""

    CONFIG = ("config_invalid", 2, False, 422)
    NOT_FOUND = ("not_found", 1, False, 404)
    OPERATION = ("operation_failed", 1, False, 409)
    GATE = ("gate_failed", 3, False, 409)
    AUTH = ("auth_denied", 4, False, 403)
    DEPENDENCY = ("dependency_unreachable", 5, True, 503)
    RUN_FAILED = ("run_failed", 6, False, 409)
    LOG = ("log_refused", 1, False, 500)
    TRANSIENT = ("transient", 1, True, 503)

    def __init__(self, slug: str, exit_code: int, retryable: bool, status: int) -> None:
        self.slug, self.exit_code, self.retryable, self.status = slug, exit_code, retryable, status


class Agent0Error(Exception):
    """The base of all errors that a user reads: what happened, why, and what to do next.

    User names and passwords are removed from addresses in all three texts; they are clean text. The first
    two are sentences; a mend may end with a command, and stays as it is.
    """

    kind = ErrorKind.OPERATION

    def __init__(self, what: str, why: str = "", fix: str = "") -> None:
        what, why, fix = (clean_text(bare_url(text)) for text in (what, why, fix))
        self.what, self.why, self.fix = what, why, fix = sentence(what), sentence(why), fix
        super().__init__(" ".join(part.strip() for part in (what, why, fix) if part.strip()))


class ConfigError(Agent0Error):
    """Settings, flags or ids that a user gave are wrong; the CLI exits with 2."""

    kind = ErrorKind.CONFIG


class UnknownPriceError(ConfigError):
    """Nobody knows what a call costs, and a budget that it would be charged to is capped."""


class RewardError(ConfigError):
    """A part of a reward, or what its set makes of the parts, is no finite number. Another try gives the same."""


class NotFoundError(Agent0Error):
    """A run, task, event or artifact does not exist; the CLI exits with 1."""

    kind = ErrorKind.NOT_FOUND


class OperationError(Agent0Error):
    """The requested operation cannot be done; the CLI exits with 1."""


class RefusedError(OperationError):
    """A model cannot be asked so, or its server refused the request, before a word was written: nobody sends a bill."""


class ContextFullError(RefusedError):
    """What a model was to read, with room for a turn, does not fit into its context window."""


class StreamBrokenError(OperationError):
    """A turn broke off after a part of it had been passed on: no other model may go on with it. Charged in full."""


class UsageError(OperationError):
    """A provider's count of tokens is missing, negative or contradicts itself. The call is charged in full."""


class GateError(Agent0Error):
    """A check that was requested does not hold; the CLI exits with 3."""

    kind = ErrorKind.GATE


class RunFailedError(Agent0Error):
    """A run gave up too much, or had nothing to train on; the CLI exits with 6."""

    kind = ErrorKind.RUN_FAILED


class AuthError(Agent0Error):
    """Credentials are missing, or the server refused them; the CLI exits with 4."""

    kind = ErrorKind.AUTH


class DependencyError(Agent0Error):
    """A server, model, sandbox or disk is unavailable. The reaction waits for it: no delivery is used up,
    nothing is lost."""

    kind = ErrorKind.DEPENDENCY

    def __init__(self, dependency: str, why: str = "", fix: str = "") -> None:
        self.dependency = bare_url(dependency)
        super().__init__(f"{dependency} is not available.", why, fix)


class SandboxUnavailableError(DependencyError):
    """No sandbox backend passed its self-test. Nothing runs then: there is no weaker fallback."""


class NotSentError(DependencyError):
    """A server cannot be reached or takes no request now: nothing was sent that it could charge for."""


class ServerBusyError(NotSentError):
    """A server takes no request now. ``after_s``: seconds after which it wants to be asked again, 0 where it did not
    say."""

    def __init__(self, dependency: str, why: str = "", fix: str = "", after_s: float = 0.0) -> None:
        super().__init__(dependency, why, fix)
        self.after_s = after_s


class ModelChangedError(DependencyError):
    """A server serves another model, or another quantisation, than it did before in the same run. Nothing more is sent
    to it; its reactions wait."""


class OtherServerError(DependencyError):
    """What answers at the address of a model server is a server of another kind: a page came, and no answer of a model.
    Reactions wait until the right one is there."""


class BudgetExhaustedError(DependencyError):
    """A call may cost more than a budget has left. Nothing was sent; it is asked again, and goes through once the cap
    was raised or open reservations were settled for less."""

    def __init__(self, budget: str, why: str, fix: str) -> None:
        super().__init__(budget, why, fix)
        self.what = f"The {self.dependency} is used up."
        self.args = (" ".join(part for part in (self.what, self.why, self.fix) if part),)


class RequirementsError(Agent0Error):
    """A run needs what this machine lacks, and has not begun; the CLI exits with 5."""

    kind = ErrorKind.DEPENDENCY


class LogError(Agent0Error):
    """The log refuses an operation, differs from its provisioned form, or was altered."""

    kind = ErrorKind.LOG


class EarlierLogError(LogError):
    """A log, or an archive of one, that a version before 0.1.0 wrote."""

    @classmethod
    def of(cls, subject: str = "This log") -> "EarlierLogError":
        """Make the error that refuses ``subject``, with what can be done about it."""
        why = "Its events have other fields, and its runs are under rules that are gone."
        fix = "Begin anew in an empty data folder (AGENT0_HOME=…), or read it with the Agent0 that wrote it."
        return cls(f"{subject} was written before 0.1.0.", why, fix)


class TransientError(Agent0Error):
    """The operation failed for a reason that may pass; it is retried and uses up a delivery."""

    kind = ErrorKind.TRANSIENT


def sentence(text: str) -> str:
    """``text`` with one full stop at its end, unless it is empty, a list of lines, or ends in another mark: what others
    said is quoted in our texts, and may end with one or without."""
    text = _DOUBLED.sub(".", text.rstrip())
    return text if not text or "\n" in text or _ENDED.search(text) else f"{text}."


def bare_url(text: str) -> str:
    """``text`` with no user and no password in any address in it."""
    return _CREDENTIALS.sub("", text) if "@" in text else text


def clean_text(text: str) -> str:
    """``text`` as a log can hold it: the two halves of a surrogate pair as the character they spell, a half that is
    alone and a NUL as U+FFFD."""
    if text.isascii():
        return text.replace("\0", REPLACEMENT)
    return text.replace("\0", REPLACEMENT).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def bare_address(value: str) -> str:
    """A setting known to be an address, or several: without anything before an ``@``, and without its query, which may
    hold a key."""
    return re.sub(r"\?[^\s,]*", "?...", bare_url(value).rpartition("@")[2])


def escaped(text: str) -> str:
    r"""``text`` with every such character as ``\x1b`` or ``\u202e``; newline and tab stay, and a line may end in CRLF.
    Nothing of the result is changed by another call."""
    return "".join(_shown(character) for character in text.replace("\r\n", "\n"))


def _shown(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _OBEYED:
        return character
    return (
        character.encode("ascii", "backslashreplace").decode() if ord(character) > 127 else f"\\x{ord(character):02x}"
    )
