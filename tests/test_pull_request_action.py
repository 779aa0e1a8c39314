"""The GitHub Action: its steps are run by bash as a runner does, against a stand-in of GitHub's API."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from tests.test_regression import HOSTILE, MARK

FOLDER = Path(__file__).parents[1] / "integrations" / "github-action"
ACTION: dict[str, Any] = yaml.safe_load((FOLDER / "action.yml").read_text())
TOKEN = "ghs_0123456789abcdefSECRET"
FAKE = """#!/usr/bin/env python3
import json, os, sys
if sys.argv[2] == "regression":
    json.dump([sys.argv[1:], dict(os.environ)], open(os.environ["SEEN"], "w"))
    print("::error::a change's own code prints this", file=sys.stderr)
    (out,) = [word[8:] for word in sys.argv if word.startswith("--write=")]
    open(out, "w").write(open(os.environ["COMMENT"]).read())
    print(json.dumps({"costs": [{"run": "bench-a"}, {"run": "bench-b"}]}))
    sys.exit(int(os.environ["ENDS"]))
(report,) = [word[6:] for word in sys.argv if word.startswith("--out=")]
open(report, "w").write(" ".join(sys.argv[1:]))
"""


class Api(BaseHTTPRequestHandler):
    """GitHub's comments of pull request 7, for ``TOKEN``."""

    comments: ClassVar[list[dict[str, Any]]] = []
    writes, redirects = True, False

    def _answer(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
        status, value = self._handled(body)
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Location", "http://127.0.0.1:9/")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = _answer  # noqa: N815 - names of the library

    def _handled(self, body: Any) -> tuple[int, Any]:
        kept = type(self)
        if kept.redirects:
            return 307, {}
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            return 401, {"message": "Bad credentials"}
        if self.command != "GET" and not kept.writes:
            return 403, {"message": "Resource not accessible by integration"}
        path, _, query = self.path.partition("?")
        if path == "/repos/lab/own/issues/7/comments" and self.command == "GET":
            page = int(re.findall(r"&page=(\d+)", query)[0])
            return 200, kept.comments[100 * (page - 1) : 100 * page]
        if path == "/repos/lab/own/issues/7/comments" and self.command == "POST":
            kept.comments.append({"id": len(kept.comments), "user": {"type": "Bot"}, "body": body["body"]})
            return 201, kept.comments[-1]
        number = re.fullmatch(r"/repos/lab/own/issues/comments/(\d+)", path)
        if number and self.command == "PATCH":
            kept.comments[int(number[1])]["body"] = body["body"]
            return 200, kept.comments[int(number[1])]
        return 404, {}

    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""


@contextmanager
def github(*comments: dict[str, Any]) -> Iterator[str]:
    Api.comments, Api.writes, Api.redirects = list(comments), True, False
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class Job:
    """A job of the runner with this action in it; ``log`` is all that it printed."""

    def __init__(self, at: Path, api: str, **inputs: str) -> None:
        self.at, self.log, self.outputs = at, "", dict[str, str]()
        self.values = {f"inputs.{name}": str(entry.get("default", "")) for name, entry in ACTION["inputs"].items()}
        self.values |= {"inputs.token": TOKEN, "github.event.pull_request.title": HOSTILE}
        self.values |= {f"inputs.{name}": value for name, value in inputs.items()}
        files = {"GITHUB_OUTPUT": "output", "GITHUB_STEP_SUMMARY": "summary", "GITHUB_EVENT_PATH": "event.json"}
        self.env = {"PATH": f"{at}:{os.environ['PATH']}", "HOME": str(at), "RUNNER_TEMP": str(at)}
        self.env |= {name: str(at / file) for name, file in files.items()}
        self.env |= {"GITHUB_ACTION_PATH": str(FOLDER), "GITHUB_REPOSITORY": "lab/own", "GITHUB_API_URL": api}
        (at / "event.json").write_text(json.dumps({"pull_request": {"number": 7, "title": HOSTILE}}))
        for name in ("output", "summary"):
            (at / name).write_text("")

    def run(self, **env: str) -> int:
        """Run the steps as the runner does: all those with ``if: always()``; returns the last one's exit code."""
        code = 0
        for step in ACTION["runs"]["steps"]:
            if "run" not in step or (code and step.get("if") != "always()"):
                continue
            own = {name: self._value(text) for name, text in step.get("env", {}).items()}
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                env={**self.env, **env, **own},
                cwd=self.at,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            code, self.log = done.returncode, self.log + done.stdout
            pairs = (line.split("=", 1) for line in (self.at / "output").read_text().splitlines())
            self.outputs = dict(pairs)
        return code

    def _value(self, text: str) -> str:
        def filled(match: re.Match[str]) -> str:
            name = match[1].removeprefix("steps.compare.outputs.")
            return self.values[name] if name in self.values else self.outputs.get(name, "")

        return re.sub(r"\$\{\{ (.+?) \}\}", filled, text)

    @property
    def summary(self) -> str:
        return (self.at / "summary").read_text()


def job(at: Path, api: str, ends: int, text: str = f"{MARK}\nresult `x`\n", **inputs: str) -> tuple[Job, int]:
    (at / "agent0").write_text(FAKE.replace("#!/usr/bin/env python3", f"#!{sys.executable}"))
    (at / "agent0").chmod(0o755)
    (at / "text").write_text(text)
    made = Job(at, api, **{"base": "base", "change": "change", **inputs})
    return made, made.run(SEEN=str(at / "seen"), COMMENT=str(at / "text"), ENDS=str(ends))


@pytest.mark.parametrize(("ends", "blocked"), [(0, "false"), (3, "true"), (2, "")])
def test_the_job_ends_as_the_command_and_replaces_its_comment(ends: int, blocked: str, tmp_path: Path) -> None:
    others = [{"id": n, "user": {"type": "User"}, "body": MARK} for n in range(120)]
    with github(*others) as api:
        first, code = job(tmp_path, api, ends)
        again = first.run(SEEN=str(tmp_path / "seen"), COMMENT=str(tmp_path / "text"), ENDS=str(ends))
    assert code == again == ends and first.outputs["blocked"] == blocked
    mine = [each["body"] for each in Api.comments if each["user"]["type"] == "Bot"]
    assert len(mine) == 1 and mine[0].startswith(MARK) and first.summary == ""
    assert ("nothing was compared" in mine[0]) == (ends == 2)


def test_a_replay_leaves_the_report_of_its_run(tmp_path: Path) -> None:
    with github() as api:
        ran, code = job(tmp_path, api, 0, replay="r1")
    folder = Path(ran.outputs["folder"])
    assert code == 0 and (folder / "report.html").read_text() == f"report --out={folder}/report.html -- r1"


def test_hostile_titles_and_folders_are_words_and_never_commands(tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    branch = f"-x $(touch {tmp_path}/marks/a) `touch {tmp_path}/marks/b`; touch {tmp_path}/marks/c #"
    with github() as api:
        ran, code = job(tmp_path, api, 3, text=f"{MARK}\n$(touch {tmp_path}/marks/d)\n", change=branch)
    words, env = json.loads((tmp_path / "seen").read_text())
    assert code == 3 and words[-3:] == ["--", "base", branch] and f"--title={HOSTILE}" in words
    assert not list((tmp_path / "marks").iterdir()) and "$(touch" in Api.comments[0]["body"]
    assert not {"GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "TOKEN"} & set(env) and TOKEN not in json.dumps(env)
    pause, own = ran.log.index("::stop-commands::"), ran.log.index("::error::")
    end = re.findall(r"::stop-commands::([0-9a-f]{32})\n", ran.log)[0]
    assert pause < own < ran.log.index(f"\n::{end}::\n")


def refusals() -> Iterator[tuple[str, dict[str, Any], str]]:
    yield "wrong token", {"token": "ghs_other_SECRET"}, "the token is wrong or has expired"
    yield "no token", {"token": ""}, "there is no token"
    yield "no permission", {"writes": False}, "lacks the permission pull-requests: write"
    yield "a redirect", {"redirects": True}, "GitHub answered 307"
    yield "no server", {"api": "http://127.0.0.1:9"}, "cannot be used (URLError)"
    yield "no pull request", {"event": "{}"}, "not about a pull request"
    yield "a broken event", {"event": "[1"}, "cannot be used (JSONDecodeError)"


@pytest.mark.parametrize(("case", "reason"), [(case, reason) for _, case, reason in refusals()])
def test_who_may_not_comment_gets_one_line_and_the_comment_in_the_summary(
    case: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with github() as api:
        Api.writes, Api.redirects = case.get("writes", True), case.get("redirects", False)
        made = Job(tmp_path, case.get("api", api))
        (tmp_path / "event.json").write_text(case.get("event", '{"pull_request": {"number": 7}}'))
        (tmp_path / "c.md").write_text(f"{MARK}\nresult\n")
        env = {**made.env, "TOKEN": case.get("token", TOKEN)}
        script = [sys.executable, "-I", str(FOLDER / "comment.py"), str(tmp_path / "c.md")]
        done = subprocess.run(script, env=env, capture_output=True, text=True, check=True)
    (line,) = done.stdout.splitlines()
    assert reason in line and "SECRET" not in done.stdout + done.stderr and not Api.comments
    assert made.summary == f"{MARK}\nresult\n"


def test_scripts_hold_no_expression_and_others_actions_are_pinned() -> None:
    example = yaml.safe_load((FOLDER / "example.yml").read_text())
    steps = [*ACTION["runs"]["steps"], *example["jobs"]["regression"]["steps"]]
    assert not [step["run"] for step in steps if "${{" in step.get("run", "")]
    theirs = [step["uses"] for step in steps if not step.get("uses", "./").startswith("./")]
    assert theirs and all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", name) for name in theirs)
    assert example["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert "pull_request_target" not in str(example)
    (local,) = [step for step in steps if step.get("uses", "").startswith("./")]
    assert set(local["with"]) <= set(ACTION["inputs"])


@pytest.mark.slow  # part of make integrations: the command itself, twice
def test_the_action_with_the_command_itself_comments_and_leaves_its_report(tmp_path: Path) -> None:
    for name, seconds in (("base", 60), ("change", 61)):
        (tmp_path / name).mkdir()
        settings = f'profile = "scripted"\n[run.student]\ntool_seconds = {seconds}\n'
        (tmp_path / name / "agent0.toml").write_text(settings)
    with github() as api:
        real = Job(tmp_path, api, base="base", change="change", on="heldout_math", items="8")
        home = {"AGENT0_HOME": str(tmp_path / "home"), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        code = real.run(**home)
    assert (code, real.outputs["blocked"]) == (0, "false"), real.log
    (posted,) = Api.comments
    assert "`run.student.tool_seconds`: `60.0` → `61.0`" in posted["body"] and "on the same 8 items" in posted["body"]
    report = Path(real.outputs["folder"])
    assert {path.name for path in report.iterdir()} == {"comment.md", "result.json", "report.html"}
    assert TOKEN not in real.log + "".join(path.read_text() for path in report.iterdir())
