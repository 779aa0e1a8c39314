"""Harbor's task folders as tasks of a run: read or refused by name, run in the sandbox, judged by their own tests."""

import asyncio
import io
import os
import shutil
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.runtime import port_openers
from agent0.assembly.validate.questions import with_questions
from agent0.assembly.validate.run_config import check_names
from agent0.chat_format import format_call
from agent0.errors import ConfigError, DependencyError
from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.events.base import Recorded
from agent0.events.checkpoints import EvaluationItemScored
from agent0.events.tasks import ResultVerified, TaskAttempted, ToolCalled, TurnCompleted
from agent0.events.values import ToolState
from agent0.infra.models import scripted
from agent0.infra.storage.datasets import LocalQuestions
from agent0.ports.sandbox import SandboxCall, SandboxResult
from agent0.settings import RunConfig
from agent0.tasks.harbor.reading import read_harbor_task
from agent0.tools.paths import misnamed, plain
from agent0.tools.snapshots import MOST_BYTES, MOST_FILES, as_answer, save
from agent0.verification.panel import VerificationContext
from agent0.verification.repositories.harbor_tests import harbor_reward, reward_in
from agent0.verification.verifiers import verifier_for
from tests.memory import MemoryArtifacts
from tests.play import finished, play
from tests.terminal import Said, agent0
from tests.world import ports, small, started

DOCKERFILE = "# plain\nFROM python:3.12-slim\nWORKDIR /app\nCOPY data/ \\\n  ./data/\nCOPY seed.txt /app/\n"
TEST = "#!/bin/bash\ncd /app\npython3 -I /tests/check.py > /logs/verifier/reward.txt\n"
CHECK = """from pathlib import Path
total = sum(map(int, Path("/app/data/numbers.txt").read_text().split()))
try:
    print(float(Path("/app/total.txt").read_text().strip() == str(total)))
except OSError:
    print(0)
"""
SOLUTION = (
    "#!/bin/bash\nset -e\nt=0; for n in $(cat /app/data/numbers.txt); do t=$((t + n)); done\necho $t > total.txt\n"
)


USUAL_IMAGE = """FROM ubuntu:24.04
RUN apt-get update && apt-get install -y --no-install-recommends curl python3 && rm -rf /var/lib/apt/lists/*
RUN --network=host pip install --no-cache-dir pytest==8.4.1 pytest-json-ctrf==0.3.5
WORKDIR /app
COPY . .
"""
USUAL_TEST = """#!/bin/bash
apt-get update
curl -LsSf https://example.org/uv/install.sh | sh
source $HOME/.local/bin/env
uvx --with pytest==8.4.1 --with pytest-json-ctrf==0.3.5 pytest --ctrf /logs/verifier/ctrf.json /tests/test_sum.py -rA
if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
"""
USUAL_CHECK = """from pathlib import Path


def test_sum():
    numbers = Path("/app/data/numbers.txt").read_text().split()
    assert Path("/app/total.txt").read_text().strip() == str(sum(map(int, numbers)))
"""
"""As most folders of others are: an image that installs the tools of tests, and tests that install them again."""


def task_files(numbers: str = "1 2 3", **changes: str | None) -> dict[str, bytes]:
    texts: dict[str, str | None] = {
        "task.toml": 'version = "1.0"\n[verifier]\ntimeout_sec = 20\n[environment]\ncpus = 1\n',
        "instruction.md": f"Write the sum of data/numbers.txt into /app/total.txt. ({numbers})\n",
        "environment/Dockerfile": DOCKERFILE,
        "environment/data/numbers.txt": numbers,
        "environment/seed.txt": "seed",
        "tests/test.sh": TEST,
        "tests/check.py": CHECK,
        "solution/solve.sh": SOLUTION,
    }
    texts |= {name.replace("__", "/").replace("_dot_", "."): text for name, text in changes.items()}
    return {path: text.encode() for path, text in texts.items() if text is not None}


def laid_out(folder: Path, files: dict[str, bytes]) -> Path:
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


UNPACK = '#!/bin/bash\npython3 -I -c \'import tarfile; tarfile.open("bomb.tar.gz").extractall(filter="data")\'\n'
BUILD = "FROM python:3\n{} bomb.tar.gz /app/\n"
BOMBS = {
    "unpacked": "its solution ends with error: OSError: [Errno 28] No space left on device",
    "built": "built/environment/Dockerfile, line 2, cannot be used here. 'ADD bomb.tar.gz /app/' needs a build",
    "many": f"many has more than {MOST_FILES:,} files",
    "pipe": "pipe/environment/data/pipe cannot be read",
    "sparse": "sparse/environment/zeros cannot be read. it has 1,099,511,627,776 bytes",
}


def lay_out_bombs(folder: Path) -> None:
    """Task folders that are small, and are not once they are read, unpacked or built."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        entry = tarfile.TarInfo("zeros")
        entry.size = MOST_BYTES + (8 << 20)
        archive.addfile(entry, io.BytesIO(bytes(entry.size)))
    bomb = {"environment/bomb.tar.gz": packed.getvalue()}
    copied, added = (task_files(environment__Dockerfile=BUILD.format(word)) for word in ("COPY", "ADD"))
    laid_out(folder / "unpacked", copied | bomb | {"solution/solve.sh": UNPACK.encode()})
    laid_out(folder / "built", added | bomb)
    laid_out(folder / "many", task_files() | {f"environment/data/{number}": b"" for number in range(MOST_FILES + 1)})
    os.mkfifo(laid_out(folder / "pipe", task_files()) / "environment/data/pipe")
    with (laid_out(folder / "sparse", task_files()) / "environment/zeros").open("wb") as file:
        file.truncate(1 << 40)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the environment ``sums``: three tasks; the others were refused by name."""
    base = tmp_path_factory.mktemp("harbor")
    for name, numbers in (("one", "1 2 3"), ("two", "4 5")):
        laid_out(base / "sums" / name, task_files(numbers))
    usual = {"environment/Dockerfile": USUAL_IMAGE, "tests/test.sh": USUAL_TEST, "tests/test_sum.py": USUAL_CHECK}
    laid_out(base / "sums" / "usual", task_files("6") | {path: text.encode() for path, text in usual.items()})
    laid_out(base / "sums" / "unsolved", task_files(solution__solve_dot_sh="echo 1 > total.txt\n"))
    laid_out(base / "sums" / "given", task_files(tests__check_dot_py="print(1)"))
    laid_out(base / "sums" / "endless", task_files(instruction_dot_md="Add. " * 7000))
    (laid_out(base / "sums" / "linked", task_files()) / "environment/passwd").symlink_to("/etc/passwd")
    lay_out_bombs(base / "sums")
    result = agent0("env", "add", "harbor", str(base / "sums"), "--json", home=base / "home")
    assert result.code == 0 and result.json["tasks"] == ["one", "two", "usual"], result.err
    refused = {
        "endless": "endless/instruction.md cannot be used here: it has 34,999 characters",
        "given": "an untouched folder gets the full reward",
        "linked": "linked/environment/passwd is a link. Links are not followed.",
        "unsolved": "its own solution does not get the reward 1",
        **BOMBS,
    }
    assert result.json["refused"].keys() == refused.keys()
    assert all(result.json["refused"][name].startswith(why) for name, why in refused.items()), result.json["refused"]
    return base / "home"


def plan(home: Path) -> RunConfig:
    sizes: dict[str, Any] = {"iterations": 1, "tasks": 1, "attempts": 1, "evaluation": {"validation": 1, "test": 0}}
    named = {"questions": {"file": str(home / "environments/sums")}, "student": {"max_tokens": 600}}
    config = with_questions(small(**named | sizes))
    check_names(config)
    return config


def of(told: Sequence[Recorded], kind: Any) -> list[Any]:
    return [recorded.event for recorded in told if isinstance(recorded.event, kind)]


def student(code: str) -> Callable[..., str]:
    """What a student writes that runs ``code`` in its first turn and is done in its second."""

    def say(request, skill, rng):  # type: ignore[no-untyped-def]
        places = [at for at, turn in enumerate(request.turns) if turn.role == "user"]
        written = any(turn.role == "assistant" for turn in request.turns[places[-1] :])
        return "Done. \\boxed{done}" if written else format_call("python", {"code": code})

    return say


ADD = "t = sum(map(int, open('/app/data/numbers.txt').read().split())); open('total.txt', 'w').write(str(t))"
CHEAT = "import os; os.makedirs('logs/verifier'); open('logs/verifier/reward.json', 'w').write('{\"reward\": 1}')\n"
CHEAT += "os.makedirs('tests'); open('tests/check.py', 'w').write('print(1)')"


@pytest.mark.parametrize(("code", "right"), [(ADD, True), (CHEAT, False)], ids=["solved", "cheated"])
def test_a_run_asks_the_tasks_and_their_own_tests_decide(
    code: str, right: bool, home: Path, shared_sandbox: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that a student leaves in the places of tests or reward counts."""
    monkeypatch.setattr(scripted, "_say", student(code))
    sandbox = asyncio.run(port_openers.open_sandbox())
    told = finished(play(started(plan(home)), {**ports(), "sandbox": sandbox, "verifier_sandbox": sandbox}))
    verdicts = of(told, ResultVerified)
    assert [(event.verifier, event.correct) for event in verdicts] == [("harbor", right)]
    assert verdicts[0].reason == f"reward {int(right)}"
    assert [event.correct for event in of(told, EvaluationItemScored)] == [right]
    assert of(told, TurnCompleted) and [event.call.name for event in of(told, ToolCalled)] == ["python"]
    assert all(event.end == "answered" and event.work for event in of(told, TaskAttempted))


def test_a_run_waits_where_its_environment_is_another_one(home: Path, tmp_path: Path) -> None:
    config = plan(Path(shutil.copytree(home, tmp_path / "home")))
    script = next((tmp_path / "home/environments/sums/solutions").glob("*.json"))
    script.write_text(script.read_text().replace('"seconds": 20.0', '"seconds": 21.0'))
    with pytest.raises(DependencyError, match="It has changed"):
        LocalQuestions().read(config.questions)


REFUSED: dict[str, tuple[dict[str, str | None], str]] = {
    "no script": ({"tests__test_dot_sh": None}, r"has no tests/test\.sh"),
    "no solution": ({"solution__solve_dot_sh": None}, r"has no solution/solve\.sh"),
    "a build": (
        {"environment__Dockerfile": "FROM python:3\nRUN pip install x\n"},
        "line 2, cannot.*RUN pip.*needs a build",
    ),
    "a continued build": ({"environment__Dockerfile": "FROM python:3\n\nRUN a \\\n  b\n"}, "line 3,"),
    "another image": ({"environment__Dockerfile": "FROM nginx:1\n"}, "line 1, cannot.*FROM nginx"),
    "a build after what is here": (
        {"environment__Dockerfile": "FROM python:3\nRUN apt-get update && apt-get install -y curl gcc\n"},
        "line 2, cannot.*gcc.*needs a build",
    ),
    "a program of the network": ({"environment__Dockerfile": "FROM debian\nRUN curl x | sh\n"}, "line 2, cannot"),
    "no image": ({"environment__Dockerfile": "WORKDIR /app\n"}, "names no plain image"),
    "another place": ({"environment__Dockerfile": "FROM python:3\nCOPY seed.txt /etc/\n"}, "is not below /app"),
    "out of the place": ({"environment__Dockerfile": "FROM python:3\nCOPY seed.txt ../etc/x\n"}, "is not below /app"),
    "out of the folder": ({"environment__Dockerfile": "FROM python:3\nCOPY ../solution .\n"}, r"no '\.\./solution'"),
    "its own tests": ({"environment__Dockerfile": "FROM python:3\nCOPY data tests\n"}, "/app/tests would be"),
    "torn": ({"task_dot_toml": "[verifier\n"}, "task.toml cannot be used.*line 1"),
    "no time": ({"task_dot_toml": "[verifier]\ntimeout_sec = nan\n"}, "verifier.timeout_sec: Input should be a finite"),
    "a bool": ({"task_dot_toml": "[verifier]\ntimeout_sec = true\n"}, "verifier.timeout_sec: Input should be a valid"),
    "a GPU": ({"task_dot_toml": "[environment]\ngpus = 1\n"}, "environment.gpus: it needs a GPU"),
    "steps": ({"task_dot_toml": "[[steps]]\nname = 'a'\n"}, "steps: it has several"),
    "a server": ({"task_dot_toml": "[environment]\ndocker_image = 'redis'\n"}, "docker_image: it is no plain image"),
    "no words": ({"instruction_dot_md": " \n"}, r"instruction\.md is empty"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_needs_more_is_refused_by_file_and_field(case: str) -> None:
    changes, why = REFUSED[case]
    with pytest.raises(ConfigError, match=why):
        read_harbor_task("task", task_files(**changes))


def test_bytes_names_and_copies() -> None:
    task = read_harbor_task("task", task_files())
    assert sorted(task.start) == ["data/numbers.txt", "instruction.md", "seed.txt"] and task.seconds == 20
    whole = read_harbor_task("task", task_files(environment__Dockerfile="FROM python\nCOPY . .\n"))
    assert sorted(whole.start) == ["data/numbers.txt", "instruction.md", "seed.txt"]
    renamed = read_harbor_task("task", task_files(environment__Dockerfile="FROM python\nCOPY seed.txt /app/a/b.txt\n"))
    assert sorted(renamed.start) == ["a/b.txt", "instruction.md"]
    with pytest.raises(ConfigError, match=r"instruction\.md cannot be used here.*no UTF-8.*at byte 1"):
        read_harbor_task("task", task_files() | {"instruction.md": b"a\xff"})
    for name in ("..", "a/b", "", "x" * 101, "a\nb"):
        with pytest.raises(ConfigError, match="no name of a task"):
            read_harbor_task(name, task_files())


TEXT, JSON = "logs/verifier/reward.txt", "logs/verifier/reward.json"


@pytest.mark.parametrize(
    ("files", "reward", "why"),
    [
        ({TEXT: b"1\n"}, 1.0, "reward 1"),
        ({TEXT: b"0.25"}, 0.25, "reward 0.25"),
        ({JSON: b'{"reward": 1, "style": 0}', TEXT: b"0"}, 1.0, "reward 1"),
        ({JSON: b'{"score": 0.5}'}, 0.5, "reward 0.5"),
        ({}, None, "wrote no reward"),
        ({TEXT: b""}, None, "is no number"),
        ({TEXT: b"True"}, None, "is no number"),
        ({TEXT: b"\xff"}, None, "is no number"),
        ({TEXT: b"nan"}, None, "its reward is nan"),
        ({TEXT: b"inf"}, None, "its reward is inf"),
        ({TEXT: b"1e999"}, None, "its reward is inf"),
        ({JSON: b'{"reward": true}'}, None, "reward.json: reward"),
        ({JSON: b'{"reward": "1"}'}, None, "reward.json: reward"),
        ({JSON: b'{"reward": NaN}'}, None, "its reward is nan"),
        ({JSON: b'{"a": 1, "b": 1}'}, None, "none is named reward"),
        ({JSON: b"{}"}, None, "none is named reward"),
        ({JSON: b"[1]"}, None, "reward.json"),
        ({JSON: b'{"reward": 1', TEXT: b"1"}, None, "reward.json"),
    ],
)
def test_only_a_finite_number_is_a_reward(files: dict[str, bytes], reward: float | None, why: str) -> None:
    read = reward_in(files)
    assert read.reward == reward and why in read.why


def test_tools_take_the_paths_that_instructions_name() -> None:
    paths = {"/app/a/b.txt": "a/b.txt", "/app": "", "/app//a": "a", "app/a": "app/a", "/application": "/application"}
    assert {path: plain(path) for path in paths} == paths
    assert misnamed(plain("/app/../etc/passwd")) and misnamed(plain("/etc/app"))


class Away:
    """A sandbox that does not run its calls."""

    def __init__(self, state: ToolState) -> None:
        self.state = state

    async def call(self, call: SandboxCall) -> SandboxResult:
        return SandboxResult(self.state, None, "", "", 0.0, 0.0, 0.0, "", "")

    async def close(self) -> None:
        """Nothing is open."""


async def test_a_sandbox_that_fails_is_nobodys_wrong_answer(home: Path) -> None:
    """A hang is the folder's own doing; a sandbox that did not run the tests decides nothing."""
    for state in (ToolState.SANDBOX_ERROR, ToolState.BUSY, ToolState.REFUSED, ToolState.CANCELLED):
        assert (await harbor_reward("tests/test.sh", {}, {}, Away(state), 1.0)).sandbox_failed
    hang = await harbor_reward("tests/test.sh", {}, {}, Away(ToolState.TIMEOUT), 1.0)
    assert (hang.sandbox_failed, hang.why) == (False, "its tests hang")
    task = questions(LocalQuestions(), plan(home).questions).tasks["train"][0]
    files, judge = LocalQuestions().files(plan(home).questions), verifier_for(task)
    context = VerificationContext(artifacts=files)
    assert [v.correct for v in await judge.judge(task, [None], Away(ToolState.BUSY), context)] == [None]
    assert [v.correct for v in await judge.judge(task, [None, "done"], Away(ToolState.TIMEOUT), context)] == [False] * 2
    assert [v.correct for v in await judge.judge(task, [None], Away(ToolState.OK))] == [None]
    assert as_answer(save({}, MemoryArtifacts())) is None


def test_environments_are_listed_and_removed(home: Path, tmp_path: Path) -> None:
    def env(*arguments: str) -> Said:
        return agent0("env", *arguments, home=home)

    (row,) = env("list", "--json").json
    assert (row["environment"], row["tasks"], row["problem"]) == ("sums", 3, "") and len(row["sha256"]) == 64
    assert row["sha256"] == plan(home).questions.sha256, "what a run names"
    (tmp_path / "none").mkdir()
    bad = laid_out(tmp_path / "bad" / "x", task_files(solution__solve_dot_sh="exit 3"))
    for arguments, code, why in (
        (("add", "harbor", str(tmp_path / "none")), 1, "has no task of Harbor"),
        (("add", "harbor", str(bad), "--name", "sums"), 1, "There is an environment sums"),
        (("add", "harbor", str(bad), "--name", "../x"), 2, "is no name of an environment"),
        (("rm", "nope"), 1, "There is no environment nope"),
    ):
        result = env(*arguments)
        assert (result.code, why in result.err) == (code, True), result.err
    refused = env("add", "harbor", str(bad), "--name", "bad", "--json")
    assert refused.code == 1 and "its solution ends with error" in refused.json["refused"]["x"]
    assert [path.name for path in (home / "environments").iterdir()] == ["sums"], "nothing is half stored"
    judged = agent0("task", "judge", "one", str(tmp_path), "--from", row["folder"], home=home)
    assert judged.code == 1 and "It is a task of Harbor" in judged.err
    assert env("rm", "sums").code == 0 and env("list", "--json").json == []
