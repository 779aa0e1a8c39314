"""Keys of the API. The data folder holds their digests only; a key is shown once, when it is made."""

import hashlib
import hmac
import json
import re
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from agent0.assembly.runtime.stamping import utc_now
from agent0.errors import ConfigError, LogError, NotFoundError

SCOPES = ("read", "submit", "admin")
"""Each may what those before it may: look; start runs, submit tasks, chat; everything else."""
PREFIX = "a0_"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True)
class Key:
    """A key as it is stored: its owner's name for it, what it may do, its sha256."""

    name: str
    scope: str
    sha256: str
    created: str

    def may(self, scope: str) -> bool:
        """Whether it may do what ``scope`` stands for."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


class KeyFile:
    """``<home>/api-keys.json``, for its owner's eyes only. It is read at each use, so a key that was removed is
    refused from then on."""

    def __init__(self, home: Path) -> None:
        self._path = home / "api-keys.json"

    def read(self) -> list[Key]:
        """All keys.

        Raises:
            LogError: the file is damaged: every key is refused then.
        """
        try:
            return [Key(**entry) for entry in json.loads(self._path.read_bytes())]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError) as error:
            fix = f"Remove {self._path} and make new keys: agent0 api key add NAME"
            raise LogError("The file of API keys cannot be read.", f"{error}.", fix) from error

    def add(self, name: str, scope: str) -> str:
        """Make a key; returns its text, which is stored nowhere. It has 256 random bits, so that a plain digest of it
        tells nothing.

        Raises:
            ConfigError: the name is taken or cannot be, or there is no such scope.
        """
        keys = self.read()
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{name[:80]!r} is no name of a key.", "It has 1 to 64 letters, digits, '_', '.' and '-'."
            )
        if scope not in SCOPES:
            raise ConfigError(f"There is no scope {scope[:80]!r}.", f"Known: {', '.join(SCOPES)}.")
        if any(key.name == name for key in keys):
            raise ConfigError(f"There is a key {name!r} already.", fix=f"Remove it: agent0 api key remove {name}")
        text = PREFIX + secrets.token_urlsafe(32)
        self._write([*keys, Key(name, scope, _digest(text), utc_now().isoformat(timespec="seconds"))])
        return text

    def remove(self, name: str) -> None:
        """Forget a key.

        Raises:
            NotFoundError: there is no such key.
        """
        keys = self.read()
        if not any(key.name == name for key in keys):
            raise NotFoundError(f"There is no key {name[:80]!r}.", fix="See: agent0 api key list")
        self._write([key for key in keys if key.name != name])

    def find(self, text: str) -> Key | None:
        """The key that ``text`` is; all are compared, each in constant time."""
        digest = _digest(text)
        matches = [key for key in self.read() if hmac.compare_digest(key.sha256, digest)]
        return matches[0] if matches else None

    def has(self, key: Key) -> bool:
        """Whether ``key`` was not removed; no key is there in a damaged file."""
        try:
            return key in self.read()
        except LogError:
            return False

    def _write(self, keys: list[Key]) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self._path.with_name(f".{self._path.name}.{uuid4().hex}")
        beside.touch(mode=0o600)
        beside.write_text(json.dumps([asdict(key) for key in keys], indent=2), encoding="utf-8")
        beside.replace(self._path)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
