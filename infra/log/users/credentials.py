"""What a user of an external log server proves itself with."""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from agent0.errors import AuthError, RequirementsError

_SEED = re.compile(r"SU[A-Z2-7]{56}")


def proof(path: Path) -> Mapping[str, str]:
    """Keyword arguments of ``nats.connect`` for the file at ``path``: the seed of a user's key, or credentials.

    Raises:
        AuthError: it cannot be read, or holds neither. RequirementsError: the package for keys is missing.
    """
    if find_spec("nkeys") is None:
        raise RequirementsError("nkeys is not installed.", fix='Install it: pip install "agent0-train[cluster]"')
    fix = "AGENT0_NATS__CREDENTIALS names a file that `agent0 cluster keys` made, or a .creds file."
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise AuthError("The key for the log cannot be read.", f"{path}: {error}.", fix) from error
    if _SEED.fullmatch(text):
        return {"nkeys_seed_str": text}
    if "BEGIN NATS USER JWT" in text and "SEED" in text:
        return {"user_credentials": str(path)}
    raise AuthError("The key for the log is none.", f"{path} holds neither a seed nor credentials.", fix)
