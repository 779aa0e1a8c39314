"""Keys of a log that hosts share: over TLS each role does its part of a run with its own user, and nothing else."""

import asyncio
import json
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import nats
import pytest

from agent0.assembly.log.access import open_log, provision
from agent0.assembly.runtime.app import open_app, run_handlers, started
from agent0.assembly.runtime.read_models import reading, run_projector
from agent0.config.loading import load
from agent0.config.sources import dotenv, environment
from agent0.errors import AuthError, DependencyError, LogError
from agent0.events import event_types
from agent0.events.alarms import AlarmRaised, DependencyLost
from agent0.events.base import record
from agent0.infra.bus.group_commit import Committer
from agent0.infra.bus.processes import ask
from agent0.infra.integrity.archive import events_of, manifest_of
from agent0.infra.integrity.archive_place import open_archive
from agent0.infra.log.nats_server import Server, binary
from agent0.infra.log.users import keys as key_files
from agent0.infra.log.users.keys import make_keys, rotate_keys
from agent0.infra.log.users.rights import EVENTS_OF, ROLES
from agent0.infra.log.users.roles import ROLES as HANDLERS_OF
from agent0.projections.runs import list_runs
from agent0.settings import Settings
from tests.patience import PATIENCE_S
from tests.terminal import agent0
from tests.test_golden_archive import ARCHIVE

SIZES = {
    "RUN__ITERATIONS": "1",
    "RUN__TASKS": "3",
    "RUN__ATTEMPTS": "2",
    "RUN__EVALUATION__VALIDATION": "3",
    "RUN__EVALUATION__TEST": "0",
    "ARTIFACTS__STORE": "nats",
}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "keys"
    answer = agent0("cluster", "keys", str(folder), "--host", "127.0.0.1", "--host", "nats-1")
    assert answer.code == 0, answer.err
    return folder


@contextmanager
def serving(keys: Path, store: Path) -> Iterator[int]:
    """A server with ``keys``; its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    config, names = str(keys / "server" / "nats-server.conf"), {"NATS_NAME": "nats-1", "NATS_STORE": str(store)}
    flags = ["--addr", "127.0.0.1", "--port", str(port), "--log", str(store / "log")]
    with subprocess.Popen([str(binary()), "-c", config, *flags], env=names) as process:
        try:
            yield port
        finally:
            process.kill()


def of_role(keys: Path, role: str, home: Path, port: int, **more: str) -> Settings:
    """Settings of a process whose host got the folder of ``role``."""
    own = {entry.key: str(entry.value) for entry in dotenv(keys / role / "agent0.env")}
    url = own.pop("nats.url").partition(",")[0].replace(":4222", f":{port}")
    names = {f"AGENT0_{key.upper().replace('.', '__')}": value for key, value in own.items()}
    names |= {f"AGENT0_{key}": value for key, value in {**SIZES, **more}.items()}
    return load("scripted", {"home": str(home / role), "nats.url": url}, names)


@pytest.fixture(scope="module")
def port(keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of a server with a log, made by the administrator."""
    folder = tmp_path_factory.mktemp("served")
    with serving(keys, folder) as port:
        asyncio.run(_made(of_role(keys, "admin", folder, port)))
        yield port


async def _made(settings: Settings) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await provision(settings)
            except DependencyError:
                await asyncio.sleep(0.05)  # it is still starting


def test_workers_are_those_of_the_command_and_their_events_exist() -> None:
    assert set(EVENTS_OF) == set(HANDLERS_OF) and {*EVENTS_OF, "admin", "api", "projector"} == set(ROLES)
    assert {kind for kinds in EVENTS_OF.values() for kind in kinds} <= set(event_types())


def test_past_runs_hold_no_event_that_the_role_of_its_handler_may_not_append() -> None:
    role_of = {handler: role for role, handlers in HANDLERS_OF.items() for handler in handlers}
    archive = open_archive(ARCHIVE)
    for chunk in events_of(archive, manifest_of(archive)):
        for event in (json.loads(body) for _, body in chunk):
            if role := role_of.get(event["handler"]):
                assert event["type"] in EVENTS_OF[role], (role, event["type"])


def test_what_is_secret_is_private_and_each_folder_has_its_own(keys: Path) -> None:
    files = [path for path in keys.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert [path.parent.name for path in files if path.name == "ca.key"] == ["ca"]
    seeds = {path.read_text() for path in files if path.name == "user.nk"}
    assert len(seeds) == len(ROLES)
    assert not any(seed in path.read_text() for seed in seeds for path in (keys / "server").iterdir())


def test_a_shell_reads_a_roles_settings_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    make_keys(folder, ["127.0.0.1"])
    file = folder / "student" / "agent0.env"
    command = ["bash", "-c", 'set -a; . "$1"; env', "bash", str(file)]
    told = subprocess.run(command, env={}, capture_output=True, text=True, check=True).stdout.splitlines()
    read = environment(dict(line.split("=", 1) for line in told))
    assert {e.key: e.value for e in read} == {e.key: e.value for e in dotenv(file)}
    assert {e.value for e in read} >= {f"{folder}/student/user.nk", f"{folder}/student/ca.pem"}


def test_several_servers_are_told_of_each_other(keys: Path, tmp_path: Path) -> None:
    config, names = keys / "server" / "nats-cluster.conf", {"NATS_NAME": "nats-1", "NATS_STORE": str(tmp_path)}
    assert "nats://nats-1:6222" in config.read_text() and "verify: true" in config.read_text()
    assert subprocess.run([str(binary()), "-c", str(config), "-t"], env=names, capture_output=True).returncode == 0


def test_keys_that_are_there_are_not_overwritten(keys: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in keys.rglob("*") if path.is_file()}
    refused = agent0("cluster", "keys", str(keys), "--host", "127.0.0.1")
    assert refused.code == 2 and "--rotate student" in refused.err
    assert agent0("cluster", "keys", str(keys), "--rotate", "studnet").code == 2
    assert {path: path.read_bytes() for path in keys.rglob("*") if path.is_file()} == before
    assert "--host nats-1" in agent0("cluster", "keys", str(tmp_path / "none")).err
    assert "is no host" in agent0("cluster", "keys", str(tmp_path / "none"), "--host", "ä b").err
    assert not any(tmp_path.iterdir())
    assert agent0("cluster", "keys", str(tmp_path), "--rotate", "student").code == 2


@pytest.mark.usefixtures("shared_sandbox")
async def test_a_run_is_done_by_a_process_of_each_role_with_its_own_user(keys: Path, port: int, tmp_path: Path) -> None:
    """Hosts that share no folder: artifacts go through the servers, too."""
    async with AsyncExitStack() as stack:
        works = []
        for role, handlers in HANDLERS_OF.items():
            app = await stack.enter_async_context(open_app(of_role(keys, role, tmp_path, port), handlers))
            works.append(asyncio.create_task(run_handlers(app), name=role))
        tables = of_role(keys, "projector", tmp_path, port)
        followed = await stack.enter_async_context(open_log(tables, "reader"))
        works.append(asyncio.create_task(run_projector(tables, followed), name="projector"))
        person = of_role(keys, "api", tmp_path, port)
        log = await stack.enter_async_context(open_log(person))
        begin = started(person)
        await log.append([begin])
        async with asyncio.timeout(PATIENCE_S):
            assert {handler for process in await ask(log) for handler in process.handlers} >= {"attempt_task"}
            over = asyncio.create_task(_over(log.tail(0, begin.run)))
            await asyncio.wait([over, *works], return_when=asyncio.FIRST_COMPLETED)
            assert over.done() and over.result() == "RunFinished", [work for work in works if work.done()]
            while True:
                await asyncio.sleep(0.05)
                with reading(tables) as db:
                    if list_runs(db, 10)[0]["status"] == "finished":
                        break
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)
    async with open_log(person, "reader") as log:
        kinds = {r.type async for r in log.read(begin.run)}
    assert {"RewardAssigned", "CheckpointTrained", "CheckpointEvaluated"} <= kinds
    assert not kinds & {"ReactionFailed", "ReactionTried", "DependencyLost"}


async def _over(events: "object") -> str:
    async for stored in events:  # type: ignore[attr-defined]
        if stored.type in ("RunFinished", "RunFailed"):
            return str(stored.type)
    return ""


HISTORY = ("$JS.API.STREAM.DELETE.A0_EV", "$JS.API.STREAM.PURGE.A0_EV", "$JS.API.STREAM.UPDATE.A0_EV")
HISTORY = (*HISTORY, "$JS.API.STREAM.MSG.DELETE.A0_EV", "$JS.API.STREAM.PURGE.A0_ART", "$JS.API.STREAM.CREATE.OWN")
WORK = ("$JS.API.CONSUMER.MSG.NEXT.A0_EV.attempt_task", "$JS.ACK.A0_EV.attempt_task.1.1.1.1.0")
WORK = (*WORK, "$JS.API.CONSUMER.CREATE.A0_EV.attempt_task", "$JS.API.CONSUMER.DELETE.A0_EV.attempt_task")
VERDICT = "a0.ev.r1.t0-001.t0-001-a0.ResultVerified"
REFUSED = {
    "conductor": (*HISTORY, VERDICT, "a0.ev.r1.-.-.CheckpointTrained", "a0.art.x.0"),
    "teacher": (*HISTORY, VERDICT, "a0.ev.r1.t0-001.-.TaskAccepted"),
    "student": (*HISTORY, VERDICT, "a0.ev.r1.t0-001.-.RewardAssigned", "_INBOX.x.y"),
    "verifier": (*HISTORY, "a0.ev.r1.t0-001.t0-001-a0.TaskAttempted", "a0.ev.r1.-.-.RunFinished"),
    "trainer": (*HISTORY, VERDICT, "a0.ev.r1.-.-.CheckpointPromoted"),
    "projector": (*HISTORY, *WORK, VERDICT, "a0.ev.r1.-.-.LogSealed", "a0.art.x.0", "$JS.API.CONSUMER.CREATE.A0_EV"),
    "api": (*HISTORY, *WORK, "_INBOX.x.y", "$JS.API.CONSUMER.CREATE.A0_EV"),
}


@pytest.mark.parametrize("role", REFUSED)
async def test_a_role_is_refused_what_is_not_its_own(role: str, keys: Path, port: int, tmp_path: Path) -> None:
    refusals: list[str] = []

    async def note(error: Exception) -> None:
        refusals.append(str(error))

    options = Server(of_role(keys, role, tmp_path, port).nats).options("app")
    async with await nats.connect(**options, error_cb=note) as client:  # type: ignore[arg-type]
        for subject in REFUSED[role]:
            await client.publish(subject, b"{}", reply=client.new_inbox())
        await client.subscribe("a0.ev.>")
        async with asyncio.timeout(PATIENCE_S):
            while len(refusals) < len(REFUSED[role]) + 1:
                await asyncio.sleep(0.01)
    assert all(
        any(f'"{subject.lower()}"' in refusal for refusal in refusals) for subject in (*REFUSED[role], "a0.ev.>")
    )


MISPLACED = {
    ("student", "verifier"): r"key is that of student, which does not do the work of verifier\. .*key of verifier",
    ("projector", "student"): r"that of projector, which does not do the work of student\. It may not append",
    ("api", "student"): r"that of api, which does not do the work of student\. It may not take what waits",
    ("student", ""): r"does not do the work of conductor, teacher, verifier, trainer\. .*--role student",
}


@pytest.mark.parametrize("of", MISPLACED)
async def test_a_process_with_the_key_of_another_role_does_not_start(
    of: tuple[str, str], keys: Path, port: int, tmp_path: Path
) -> None:
    key, role = of
    async with open_log(of_role(keys, "api", tmp_path, port), "reader") as log:
        before = await log.last_seq()
        with pytest.raises(AuthError, match=MISPLACED[of]):
            async with open_app(of_role(keys, key, tmp_path, port), HANDLERS_OF.get(role, ())):
                pass
        assert await log.last_seq() == before, "asking for rights stores nothing"


async def test_what_a_user_may_not_store_ends_its_process_and_fails_no_reaction(
    keys: Path, port: int, tmp_path: Path
) -> None:
    ends: list[str] = []
    at = datetime.now(UTC)
    own = record(DependencyLost(dependency="x", waiting="attempt_task", message="m", waited_s=0), run="r9", time=at)
    foreign = record(AlarmRaised(alarm="a", severity="info", message="m"), run="r9", time=at)
    async with open_log(of_role(keys, "student", tmp_path, port)) as log:
        committer = Committer(log, 0.0, ends.append)
        committer.start()
        outcomes = await asyncio.gather(*(committer.commit([r]) for r in (own, foreign)), return_exceptions=True)
        with pytest.raises(LogError, match="Nothing is stored any more"):
            await committer.commit([own])
        assert await log.last_seq("r9") == 0
    assert [type(outcome) for outcome in outcomes] == [LogError, LogError], "their causes are delivered again"
    [why] = ends
    assert "AuthError" in why and "permissions violation" in why and "AlarmRaised".lower() in why.lower()


async def test_a_wrong_key_authority_or_host_is_one_sentence(keys: Path, port: int, tmp_path: Path) -> None:
    make_keys(tmp_path / "others", ["127.0.0.1"])
    own, other = keys / "student", tmp_path / "others" / "student"
    (tmp_path / "none").write_text("hunter2")
    names = {"NATS__CREDENTIALS": own / "user.nk", "NATS__TLS_CA": own / "ca.pem"}
    cases = {
        "refused the credentials.*AGENT0_NATS__CREDENTIALS": {"NATS__CREDENTIALS": other / "user.nk"},
        "not trusted.*AGENT0_NATS__TLS_CA": {"NATS__TLS_CA": other / "ca.pem"},
        "cannot be read.*cluster keys": {"NATS__CREDENTIALS": tmp_path / "absent"},
        "holds neither a seed nor": {"NATS__CREDENTIALS": tmp_path / "none"},
    }
    for sentence, wrong in cases.items():
        more = {key: str(path) for key, path in (names | wrong).items()}
        with pytest.raises(AuthError, match=f"(?s){sentence}") as refused:
            async with open_log(of_role(keys, "student", tmp_path, port, **more)):
                pass
        assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(("made", "says"), [(timedelta(hours=2), "not yet valid"), (timedelta(-900), "has expired")])
async def test_a_certificate_out_of_its_time_is_perhaps_a_wrong_clock(
    made: timedelta, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Shifted(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Shifted":
            return cls.fromtimestamp(datetime.now(tz).timestamp() + made.total_seconds(), tz)

    monkeypatch.setattr(key_files, "datetime", Shifted)
    make_keys(tmp_path / "keys", ["127.0.0.1"])
    what = f"{says}.*Here it is 20.*set-ntp.*--rotate server"
    with serving(tmp_path / "keys", tmp_path) as port, pytest.raises(AuthError, match=what) as refused:
        await _made(of_role(tmp_path / "keys", "admin", tmp_path, port))
    assert "Name the authority" not in str(refused.value)


async def test_a_replaced_key_works_beside_the_new_one_until_the_roles_next_is(keys: Path, tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    make_keys(folder, ["127.0.0.1"])
    first = (folder / "student" / "user.nk").read_bytes()
    certificate = (folder / "server" / "server.pem").read_bytes()
    rotate_keys(folder, ["student", "server"])
    second = (folder / "student" / "user.nk").read_bytes()
    assert second != first and (folder / "server" / "server.pem").read_bytes() != certificate
    for accepted, following in (((True, True), "teacher"), ((True, True), "student"), ((False, True), "teacher")):
        with serving(folder, tmp_path) as port:
            await _made(of_role(folder, "admin", tmp_path, port))
            for seed, whether in zip((first, second), accepted, strict=True):
                (tmp_path / "seed").write_bytes(seed)
                settings = of_role(folder, "student", tmp_path, port, NATS__CREDENTIALS=str(tmp_path / "seed"))
                try:
                    async with open_log(settings, "reader"):
                        assert whether
                except AuthError:
                    assert not whether
        rotate_keys(folder, [following])


def test_new_hosts_are_where_servers_and_roles_look_for_them(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    make_keys(folder, ["nats-1", "10.0.0.1"], at="/etc/agent0/log")
    before = {path: path.read_text() for path in folder.rglob("*") if path.suffix in (".env", ".conf")}
    rotate_keys(folder, ["server"])
    assert {path: path.read_text() for path in before} == before
    rotate_keys(folder, ["server"], ["nats-9", "::1"])
    after = {path: path.read_text() for path in before}
    for path, old in before.items():
        assert old.replace("://nats-1:", "://nats-9:").replace("://10.0.0.1:", "://[::1]:") == after[path]
    assert sum(after[path] != before[path] for path in before) == 1 + len(ROLES)


async def test_an_event_under_another_subject_is_read_by_nobody(keys: Path, tmp_path: Path) -> None:
    """Rights are by subject, and the event itself is in the body."""
    with serving(keys, tmp_path) as port:
        await _made(of_role(keys, "admin", tmp_path, port))
        forged = record(AlarmRaised(alarm="a", severity="info", message="m"), run="r1", time=datetime.now(UTC))
        student = of_role(keys, "student", tmp_path, port)
        async with await nats.connect(**Server(student.nats).options("app")) as client:  # type: ignore[arg-type]
            await client.jetstream().publish("a0.ev.r1.t0-001.t0-001-a0.TaskAttempted", forged.to_json())
        async with open_log(student) as log:
            with pytest.raises(LogError, match=r"AlarmRaised was published as a0\.ev\.r1\.t0-001"):
                [event async for event in log.read()]
