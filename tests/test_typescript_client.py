"""The client for TypeScript, as far as Python can see it: its types are those of the API, its version is ours, and it
refuses the same servers. What it does is tried by ``make integrations``, which builds it."""

import json
import re
import runpy
import tomllib
from collections import Counter
from pathlib import Path

from agent0.infra.web.agent0_server import OLDEST
from tests.client_cases import TABLE

ROOT = Path(__file__).parents[1]
CLIENT = ROOT / "integrations" / "typescript"


def test_the_types_are_those_of_the_api() -> None:
    """A hash over the description of every route; where it differs: ``npm run generate`` there, and commit."""
    describe = runpy.run_path(str(CLIENT / "describe.py"))
    api = describe["description"]()
    types = (CLIENT / "src" / "api.ts").read_text(encoding="utf-8")
    assert types.startswith(describe["HEAD"].format(describe["digest"](api))), "run `npm run generate` and commit"
    other = describe["changed"](describe["description"](), "", "Begun.mood")
    assert describe["digest"](other) != describe["digest"](api)
    names = {route["operationId"] for path in api["paths"].values() for route in path.values()}
    assert names == set(re.findall(r'^ +(?:get|post): operations\["(\w+)"\];', types, re.MULTILINE)) and len(names) > 50


def test_versions_are_one_promise() -> None:
    package = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (package["name"], package["version"]) == (project["name"], project["version"])
    assert "dependencies" not in package
    assert f"export const OLDEST = {json.dumps(OLDEST)} as const;" in (CLIENT / "src" / "link.ts").read_text()


def test_every_case_is_one_of_all_clients_or_says_why_not() -> None:
    left_out = [case["without"] for case in TABLE["errors"] if "without" in case]
    assert all(reason for reasons in left_out for reason in reasons.values())
    assert Counter(client for reasons in left_out for client in reasons) == {"typescript": 2, "chat": 2}
    assert len(TABLE["errors"]) + len(TABLE["reads"]) + len(TABLE["life"]) > 60
