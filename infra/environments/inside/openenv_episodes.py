"""An installed environment of OpenEnv, served on this machine alone by its own server at a free port."""

import json
import os
import socket
import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
wire = import_module("wire")


def installed(name: str) -> Distribution:
    """The distribution ``name``; where a folder or a repository is called so, the one that was installed from there and
    has a command ``server``."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        asked_for = (found for found in distributions() if found.read_text("REQUESTED") is not None)
        served = [found for found in asked_for if _command(found)]
        if len(served) != 1:
            raise
        return served[0]


def _command(found: Distribution) -> str:
    commands = found.entry_points.select(group="console_scripts", name="server")
    return next((command.value for command in commands), "")


def application(found: Distribution, path: str) -> Any:
    """The application at ``path``, MODULE:NAME; empty: ``app`` of the module of its command ``server``."""
    path = path or f"{_command(found).partition(':')[0]}:app"
    module, _, attribute = path.partition(":")
    if not module:
        raise ValueError("it has no command `server`: name its application, as in app=package.server.app:app")
    return getattr(import_module(module), attribute)


def main(name: str, options: Mapping[str, Any], address: str) -> None:
    """Serve the installed environment ``name``, and say at which address. Options in capitals are its variables."""
    os.environ.update({key: str(value) for key, value in options.items() if key.isupper()})
    uvicorn, found = import_module("uvicorn"), installed(name)
    bound = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(application(found, options.get("app", "")), log_level="warning")
    server = uvicorn.Server(config)
    threading.Thread(target=server.run, args=([bound],), daemon=True).start()
    about = {"name": found.metadata["Name"], "version": found.version}
    about["address"] = f"http://127.0.0.1:{bound.getsockname()[1]}"
    wire.serve(address, about, lambda task: None)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3])
