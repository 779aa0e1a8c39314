"""docker-compose.yml and what it mounts: checked without a container engine, its log server for real."""

import json
import re
import socket
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import nats
import pytest
import yaml
from nats.errors import Error
from pydantic import BaseModel, ConfigDict, Field
from typer.testing import CliRunner

from agent0.assembly.log.access import check_log, open_log, provision
from agent0.assembly.runtime.plugins import known_handlers
from agent0.cli import build
from agent0.config.loading import load
from agent0.infra.log.nats_server import binary
from agent0.infra.log.users import roles as role_handlers
from agent0.settings import ApiSettings, Settings

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "infra" / "images"
ROLES = ("admin", "app", "reader")
VARIABLE = re.compile(r"\$\{(?P<name>[A-Z0-9_]+)(?::-(?P<default>[^}]*)|:\?[^}]+)?\}")


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Build(Strict):
    context: str
    dockerfile: str
    target: str
    args: dict[str, str] = {}


class Device(Strict):
    driver: Literal["nvidia"]
    count: Literal["all"]
    capabilities: list[Literal["gpu"]]


class Reservations(Strict):
    devices: list[Device]


class Resources(Strict):
    reservations: Reservations


class Deploy(Strict):
    resources: Resources


class Condition(Strict):
    condition: Literal["service_started", "service_healthy", "service_completed_successfully"]
    required: bool = True


class Healthcheck(Strict):
    test: list[str] = Field(min_length=2)
    interval: str = Field(pattern=r"^\d+s$")
    timeout: str = Field(pattern=r"^\d+s$")
    retries: int = Field(ge=1)


class Service(Strict):
    """What of the Compose specification is used here, by its names."""

    image: str = Field(pattern=r"^[a-z0-9./-]+:[a-z0-9.-]+$")
    build: Build | None = None
    deploy: Deploy | None = None
    command: list[str] = Field(default=[], min_length=1)
    entrypoint: list[str] = []
    profiles: list[str] = []
    environment: dict[str, str | int] = {}
    volumes: list[str] = []
    tmpfs: list[str] = []
    ports: list[str] = []
    depends_on: dict[str, Condition] | list[str] = {}
    healthcheck: Healthcheck | None = None
    restart: Literal["no", "always", "on-failure", "unless-stopped"] = "no"
    stop_grace_period: str = Field("10s", pattern=r"^\d+s$")
    init: bool = False
    read_only: bool = False
    cap_drop: list[str] = []
    security_opt: list[str] = []


class Compose(BaseModel):
    """Keys with x- are anchors."""

    name: str = Field(pattern=r"^[a-z0-9_-]+$")
    services: dict[str, Service]
    volumes: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def compose() -> Compose:
    raw = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert all(key in Compose.model_fields or key.startswith("x-") for key in raw)
    return Compose.model_validate(raw)


def ours(compose: Compose) -> dict[str, Service]:
    return {name: service for name, service in compose.services.items() if service.build}


def test_what_services_refer_to_exists(compose: Compose) -> None:
    for name, service in compose.services.items():
        assert set(service.depends_on) <= set(compose.services), name
        for volume in service.volumes:
            source = volume.split(":")[0]
            assert (ROOT / source).exists() if source.startswith(".") else source in compose.volumes, volume
        if service.build:
            assert (ROOT / service.build.context / service.build.dockerfile).is_file()
        # A service that always starts must not wait for one that a profile leaves out.
        if not service.profiles and isinstance(service.depends_on, dict):
            for other, wish in service.depends_on.items():
                assert not (wish.required and compose.services[other].profiles), (name, other)
    wanted = {profile for service in compose.services.values() for profile in service.profiles}
    assert wanted == {*PLACES, "cli", "ollama", "observability"}


PLACES = ("local", "gpu", "cluster")
"""Profiles, of which one is chosen."""


def of_profile(compose: Compose, profile: str) -> dict[str, Service]:
    return {name: s for name, s in compose.services.items() if not s.profiles or profile in s.profiles}


@pytest.mark.parametrize("profile", PLACES)
def test_services_run_every_handler_exactly_once(compose: Compose, profile: str) -> None:
    services = of_profile(compose, profile)
    commands = [service.command for service in services.values()]
    roles = [command[3] for command in commands if command[:3] == ["handlers", "run", "--role"]]
    assert Counter(roles) == Counter(list(role_handlers.ROLES))
    assert Counter(name for role in roles for name in role_handlers.ROLES[role]) == Counter(list(known_handlers()))
    assert len([name for name in services if name.startswith("nats")]) == (3 if profile == "cluster" else 1)


def test_commands_are_commands(compose: Compose) -> None:
    for service in ours(compose).values():
        shown = CliRunner().invoke(build(), [*service.command, "--help"])
        assert shown.exit_code == 0, (service.command, shown.output)
        assert "--help" in shown.output


def test_containers_are_confined(compose: Compose) -> None:
    nested = {handler.name for handler in known_handlers().values() if any("sandbox" in p for p in handler.ports)}
    for name, service in ours(compose).items():
        assert service.read_only and service.cap_drop == ["ALL"] and service.init, name
        assert "no-new-privileges:true" in service.security_opt, name
        lifted = any("unconfined" in option for option in service.security_opt)
        played = {handler for word in service.command for handler in role_handlers.ROLES.get(word, ())}
        assert lifted == bool(nested & played), name
        assert not service.ports or service.command[0] == "up", name
    published = [port for service in compose.services.values() for port in service.ports]
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_passwords_come_from_outside_and_settings_exist(compose: Compose) -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    for name, service in ours(compose).items():
        given = {key: filled(str(value)) for key, value in service.environment.items()}
        assert given["AGENT0_NATS__PASSWORD"].startswith("given-"), name
        held = load(env=given)  # an unknown variable would be an error
        assert held.nats.user in ROLES
        assert held.nats.url == "nats://nats:4222"
    assert all(f"NATS_{role.upper()}_PASSWORD:?" in text for role in ROLES)


KEY = re.compile(r"\b[A-Z]+_API_KEY\b")


def test_pages_are_served_on_this_machine_alone_beside_the_services_that_execute_runs(compose: Compose) -> None:
    [(name, server)] = [(name, s) for name, s in compose.services.items() if s.command[:1] == ["up"]]
    assert not server.profiles and "--no-handlers" in server.command, name
    assert filled(server.ports[0]) == f"127.0.0.1:8650:{ApiSettings().port}"
    assert server.healthcheck and "/healthz" in server.healthcheck.test[-1]


def test_keys_of_vendors_reach_what_asks_models_and_nothing_else(compose: Compose) -> None:
    sources = [path for room in ("agent0", "infra") for path in (ROOT / room).rglob("*.py")]
    keys = {key for path in sources for key in KEY.findall(path.read_text())}
    assert "ANTHROPIC_API_KEY" in keys
    for name, service in compose.services.items():
        passed = {key for key in service.environment if KEY.fullmatch(key)}
        asks = service.build is not None and service.command[0] in ("handlers", "up", "--help")
        assert passed == (keys if asks else set()), name
        assert all(filled(str(service.environment[key])) == "" for key in passed)


def test_a_profile_has_those_services_on_a_gpu_that_compute_models(compose: Compose) -> None:
    computing = {"proposer", "student", "trainer"}
    gpu = {name: service for name, service in compose.services.items() if service.profiles == ["gpu"]}
    assert {name.removesuffix("-gpu") for name in gpu} == computing
    for name, service in gpu.items():
        assert service.command == compose.services[name.removesuffix("-gpu")].command
        assert service.deploy and service.build and "/cu" in service.build.args["TORCH_INDEX"], name
        assert service.image != compose.services["student"].image, "packages of another kind"


def test_images_hold_the_extras_that_their_services_use(compose: Compose) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    arguments = dict(re.findall(r"^ARG (\w+)=(\S*)$", (IMAGES / "Dockerfile").read_text(), re.M))
    installed = {extra for name, value in arguments.items() if name.endswith("_EXTRAS") for extra in value.split(",")}
    people = {
        "dev",
        "browser",
        "notebook",
        "trl",
        "prompts",
        "jupyter",
        "slack",
        "discord",
    }  # on a person's own machine
    assert set(extras) - people - installed == {"qlora"}
    added = [s.build.args["MORE_EXTRAS"] for s in ours(compose).values() if s.build and "gpu" in s.profiles[:1]]
    assert added and set(added) == {",qlora"} and arguments["MORE_EXTRAS"] == ""


def filled(text: str) -> str:
    """``text`` as Compose would fill it in, with nothing set but what must be."""
    return VARIABLE.sub(
        lambda found: found["default"] if found["default"] is not None else f"given-{found['name']}", text
    )


def test_monitoring_files_are_read() -> None:
    prometheus = yaml.safe_load((IMAGES / "prometheus.yml").read_text())
    rules = yaml.safe_load((IMAGES / "alerts.yml").read_text())
    assert prometheus["rule_files"] == ["alerts.yml"]
    assert [rule["alert"] for rule in rules["groups"][0]["rules"]]
    assert yaml.safe_load((IMAGES / "grafana-source.yml").read_text())["datasources"][0]["type"] == "prometheus"


def passwords(name: str) -> dict[str, str]:
    return {"NATS_NAME": name, **{f"NATS_{role.upper()}_PASSWORD": f"p-{role}" for role in ROLES}}


def test_cluster_configuration_is_valid() -> None:
    command = [binary(), "-t", "-c", IMAGES / "nats-cluster.conf"]
    done = subprocess.run(command, env=passwords("nats-1"), capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def log_server(tmp_path: Path) -> Iterator[str]:
    """A server with the very users and rights of the containers; only addresses and folder are its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = (IMAGES / "nats.conf").read_text()
    text = text.replace("0.0.0.0:4222", f"127.0.0.1:{port}").replace('http: "0.0.0.0:8222"', "")
    config = tmp_path / "nats.conf"
    config.write_text(text.replace('"/data"', json.dumps(str(tmp_path / "store"))))
    with subprocess.Popen([binary(), "-c", config], env=passwords("test"), stderr=subprocess.DEVNULL) as process:
        yield f"nats://127.0.0.1:{port}"
        process.terminate()


def settings(home: Path, url: str, role: str) -> Settings:
    env = {"AGENT0_NATS_URL": url, "AGENT0_NATS__USER": role, "AGENT0_NATS__PASSWORD": f"p-{role}"}
    return load("scripted", {"home": str(home)}, env)


async def test_log_server_of_the_containers_keeps_its_users_apart(tmp_path: Path, log_server: str) -> None:
    await answering(log_server)
    await provision(settings(tmp_path, log_server, "admin"))
    for role in ("app", "reader"):
        held = settings(tmp_path, log_server, role)
        async with open_log(held, "app") as log:
            await check_log(held, log, known_handlers().values())
            before = await log.info()
            for forbidden in ("STREAM.DELETE.A0_EV", "STREAM.PURGE.A0_EV", "CONSUMER.DELETE.A0_EV.advance_run"):
                with pytest.raises(Error):
                    await log.client.request(f"$JS.API.{forbidden}", b"", timeout=0.3)
            assert await log.info() == before
            await check_log(held, log, known_handlers().values())


async def answering(url: str) -> None:
    """Until the server takes connections; the client tries again by itself."""
    client = await nats.connect(
        url, user="admin", password="p-admin", max_reconnect_attempts=100, reconnect_time_wait=0.1
    )
    await client.close()
