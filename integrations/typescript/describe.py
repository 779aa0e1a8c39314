"""Writes the types of the API, ``src/api.ts``, from the description that a server gives of itself."""

import argparse
import hashlib
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from agent0.api.admission.keys import KeyFile
from agent0.api.app import create_app
from agent0.api.context import ApiContext
from agent0.api.past import PastTables
from agent0.settings import Settings

FOLDER = Path(__file__).parent
Description = dict[str, Any]
"""OpenAPI's JSON."""
TYPES = FOLDER / "src" / "api.ts"
HEAD = "// Written by `npm run generate` from the description of the API, sha256 {}.\n"


def description() -> Description:
    """The description of the API, with the problems that any route may answer told once a route (``default``)."""
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home))
        api = create_app(ApiContext(settings, KeyFile(settings.home), PastTables(settings))).openapi()
    for route in (route for path in api["paths"].values() for route in path.values()):
        answers = route["responses"]
        problems = [answers.pop(status) for status in [*answers] if not status.startswith("2")]
        if problems:
            answers["default"] = {**problems[0], "description": "a problem"}
    return api


def changed(api: Description, drop: str, add: str) -> Description:
    """``api`` as a neighbouring version would have it: without one ``Schema.field``, with another."""
    for path in filter(None, (drop, add)):
        schema, field = path.split(".")
        described = api["components"]["schemas"][schema]
        if path == drop:
            del described["properties"][field]
            described["required"].remove(field)
        else:
            described["properties"][field] = {"type": "string"}
    return api


def digest(api: Description) -> str:
    """The sha256 of what ``api`` describes; the version of who describes it is not a part."""
    described = {name: value for name, value in api.items() if name != "info"}
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def types_of(api: Description) -> str:
    """The types of ``api`` as TypeScript, by openapi-typescript of ``node_modules``."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(api, file)
        file.flush()
        command = (FOLDER / "node_modules/.bin/openapi-typescript", file.name, "--default-non-nullable=false")
        text = subprocess.run(command, check=True, capture_output=True, text=True, cwd=FOLDER).stdout
    return HEAD.format(digest(api)) + text


def main() -> None:
    """Print the types, or write them where the client has them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"to {TYPES.relative_to(FOLDER)}")
    for name, what in {"--drop": "without it", "--add": "with it"}.items():
        parser.add_argument(name, default="", metavar="SCHEMA.FIELD", help=f"as if the API were {what}")
    chosen = parser.parse_args()
    text = types_of(changed(description(), chosen.drop, chosen.add))
    if chosen.write:
        TYPES.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
