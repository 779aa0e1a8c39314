"""An installed environment of OpenEnv, served on this machine alone by its own server at a free port."""

import json
import socket
import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
wire = import_module("wire")


def application(name: str, options: Mapping[str, Any]) -> Any:
    """The application of the distribution ``name``: the option ``app``, MODULE:NAME, or ``app`` of the module of its
    command ``server``."""
    path = options.get("app", "")
    for entry in distribution(name).entry_points:
        if not path and entry.group == "console_scripts" and entry.name == "server":
            path = f"{entry.value.partition(':')[0]}:app"
    if not path:
        raise ValueError(f"{name} has no command `server`: name its application, as in app=package.server.app:app")
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def main(name: str, options: Mapping[str, Any], address: str) -> None:
    """Serve the installed environment ``name``, and say at which address."""
    uvicorn = import_module("uvicorn")
    bound = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application(name, options), log_level="warning"))
    threading.Thread(target=server.run, args=([bound],), daemon=True).start()
    about = {"name": name, "version": distribution(name).version}
    about["address"] = f"http://127.0.0.1:{bound.getsockname()[1]}"
    wire.serve(address, about, lambda task: None)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3])
