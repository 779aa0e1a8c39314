"""The Helm chart: what it renders is Kubernetes', its commands and settings are ours, and bad values are refused."""

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from jsonschema import Draft7Validator
from typer.testing import CliRunner

from agent0.assembly.log.access import check_log, open_log, provision
from agent0.assembly.runtime.plugins import known_handlers
from agent0.cli import build
from agent0.config.loading import load
from agent0.infra.log.nats_server import binary
from agent0.infra.log.users.keys import make_keys
from agent0.infra.log.users.rights import ROLES as USERS
from agent0.infra.log.users.roles import ROLES
from agent0.settings import Settings
from tests.deploy_tools import ROOT, tell, tool
from tests.patience import until

CHART = ROOT / "deploy" / "helm" / "agent0"
KUBERNETES = "1.37"
GRACE_S = 900
"""`run.student.timeout_s` of the profile `cluster`."""
Object = dict[str, Any]
Render = Callable[..., list[Object]]
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
BAD = {
    "an empty image": "image.repository=",
    "a moving version": "image.version=latest",
    "negative replicas": "roles.student.replicas=-1",
    "half a replica": "roles.student.replicas=1.5",
    "an image that is not built": "roles.student.image=nonsense",
    "an unknown key": "nonsense=1",
    "an unknown role": "roles.studnet.replicas=1",
    "an unknown key of a role": "roles.student.replica=1",
    "a role scaled to nothing": "roles.student.scale.min=0",
    "a password among the settings": "env.AGENT0_NATS__PASSWORD=x",
    "a variable that is no setting": "env.PATH=x",
    "an address with a password": "log.url=nats://me:secret@host:4222",
    "no keys": "log.keys=",
    "a size that is none": "scratch=-3",
}
"""Case -> what --set would be given; the schema refuses it."""


def nested(pair: str) -> Object:
    """What Helm makes of ``--set pair``."""
    path, _, text = pair.partition("=")
    value: Any = yaml.safe_load(text) if text else ""
    for key in reversed(path.split(".")):
        value = {key: value}
    return value  # type: ignore[no-any-return]


def merged(below: Object, above: Object) -> Object:
    both = {k: merged(below[k], v) if isinstance(v, dict) and k in below else v for k, v in above.items()}
    return {**below, **both}


def faults(values: Object) -> list[str]:
    schema = json.loads((CHART / "values.schema.json").read_text())
    Draft7Validator.check_schema(schema)
    return [error.message for error in Draft7Validator(schema).iter_errors(values)]


def test_the_values_of_the_chart_are_of_its_schema() -> None:
    assert faults(VALUES) == []
    assert faults(merged(VALUES, yaml.safe_load((CHART / "values-gpu.yaml").read_text()))) == []


@pytest.mark.parametrize("case", BAD)
def test_bad_values_are_refused(case: str) -> None:
    assert faults(merged(VALUES, nested(BAD[case])))


def test_roles_are_those_of_the_command() -> None:
    handlers = yaml.safe_load((CHART / "files" / "handlers.yaml").read_text())
    assert handlers == {role: list(names) for role, names in ROLES.items()}
    assert set(VALUES["roles"]) == set(ROLES)
    needs_sandbox = {
        handler.name for handler in known_handlers().values() if any("sandbox" in p for p in handler.ports)
    }
    for role, own in VALUES["roles"].items():
        assert own.get("sandbox", False) == bool(needs_sandbox & set(ROLES[role])), role


# --- rendered by Helm ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart as a folder that needs nothing of the network: the small chart of the log's servers is inside."""
    place = tmp_path_factory.mktemp("chart") / "agent0"
    shutil.copytree(CHART, place, ignore=shutil.ignore_patterns("charts", "Chart.lock"))
    shutil.copytree(CHART.parent / "nats", place / "charts" / "nats")
    return place


@pytest.fixture(scope="module")
def render(chart: Path) -> Render:
    helm = tool("helm")

    def rendered(*flags: str) -> list[Object]:
        command = (
            helm,
            "template",
            "agent0",
            chart,
            "--namespace",
            "ours",
            "--kube-version",
            f"{KUBERNETES}.0",
            *flags,
        )
        done = tell(*command)
        assert done.returncode == 0, done.stderr
        return [part for part in yaml.safe_load_all(done.stdout) if part]

    return rendered


SETS: dict[str, tuple[str, ...]] = {
    "as it is": (),
    "on GPUs": ("--values", str(CHART / "values-gpu.yaml")),
    "everything": (
        *("--set", "autoscaling.enabled=true,autoscaling.prometheus=http://prometheus:9090,vendorKeys=keys"),
        *("--set-json", 'networkPolicy.models=[{"to":[{"ipBlock":{"cidr":"10.1.0.0/16"}}],"ports":[{"port":8000}]}]'),
        *("--set-json", 'networkPolicy.clients=[{"podSelector":{}}]'),
        *("--set-json", 'networkPolicy.monitoring=[{"namespaceSelector":{}}]'),
        *("--set-json", 'roles.trainer.tolerations=[{"key":"gpu","operator":"Exists"}]'),
        *("--set", "roles.student.resources.requests.cpu=2,api.hosts={a.example},projector.storageClass=fast"),
    ),
    "another's log": ("--set", "nats.enabled=false,log.url=tls://nats.example:4443"),
    "one server": ("--set", "nats.config.cluster.enabled=false,log.replicas=1"),
}
each = pytest.mark.parametrize("flags", SETS.values(), ids=SETS)


def named(objects: list[Object], kind: str) -> dict[str, Object]:
    return {part["metadata"]["name"]: part for part in objects if part["kind"] == kind}


def pods(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    """(name, pod) of whatever of ours starts pods."""
    for part in objects:
        labels = part["metadata"].get("labels", {})
        if labels.get("app.kubernetes.io/name") == "agent0" and "template" in part.get("spec", {}):
            yield part["metadata"]["name"], part["spec"]["template"]["spec"]


def containers(pod: Object) -> list[Object]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


def test_helm_has_nothing_to_say(chart: Path) -> None:
    done = tell(tool("helm"), "lint", "--strict", chart, "--kube-version", f"{KUBERNETES}.0")
    assert done.returncode == 0 and "WARNING" not in done.stdout, done.stdout


@each
def test_what_is_rendered_is_of_the_schemas_of_kubernetes(
    render: Render, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    checker = tool("kubernetes-validate")
    objects = [part for part in render(*flags) if part["kind"] != "ScaledObject"]
    (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all(objects))
    done = tell(checker, "--strict", "--kubernetes-version", KUBERNETES, tmp_path / "objects.yaml")
    assert done.returncode == 0 and "WARN" not in done.stdout + done.stderr, done.stdout + done.stderr
    assert (done.stdout + done.stderr).count(" passed for ") == len(objects)


@each
def test_commands_and_settings_are_ours(render: Render, flags: tuple[str, ...]) -> None:
    objects = render(*flags)
    settings = named(objects, "ConfigMap")["agent0-settings"]["data"]
    started = [container for _, pod in pods(objects) for container in containers(pod)]
    owned = {tuple((env["name"], env["value"]) for env in container.get("env", ())) for container in started}
    for own in owned:
        loaded = load(env={**settings, **dict(own)})  # an unknown variable would be an error
        assert loaded.artifacts.store == "nats" and loaded.nats.url.startswith("tls://")
    commands = [container["args"] for container in started if "args" in container]
    for arguments in commands:
        shown = CliRunner().invoke(build(), [*arguments, "--help"])
        assert shown.exit_code == 0 and "--help" in shown.output, arguments
    roles = [arguments[3] for arguments in commands if arguments[:3] == ["handlers", "run", "--role"]]
    assert sorted(roles) == sorted(ROLES)
    assert ["log", "init"] in commands and ["log", "check"] in commands


@each
def test_pods_are_confined_and_may_end_what_they_do(render: Render, flags: tuple[str, ...]) -> None:
    for name, pod in pods(render(*flags)):
        assert pod["automountServiceAccountToken"] is False, name
        role = name.removeprefix("agent0-")
        sandboxed = VALUES["roles"].get(role, {}).get("sandbox", False)
        assert (pod.get("hostUsers") is False) == sandboxed, name
        assert role != "student" or pod["terminationGracePeriodSeconds"] >= GRACE_S
        for container in containers(pod):
            context = container["securityContext"]
            assert context["runAsNonRoot"] and context["readOnlyRootFilesystem"], name
            assert context["capabilities"] == {"drop": ["ALL"]} and context["allowPrivilegeEscalation"] is False, name
            assert (context.get("procMount") == "Unmasked") == (sandboxed and container["name"] == role), name
            mounts = {mount["name"] for mount in container["volumeMounts"]}
            assert mounts <= {"data", *(volume["name"] for volume in pod["volumes"])}, name
            assert ("models" in mounts) <= (container["name"] in ("api", role)), name


def test_probes_answer_before_pods_are_taken_as_ready(render: Render) -> None:
    objects = render()
    for role in ROLES:
        [container] = named(objects, "Deployment")[f"agent0-{role}"]["spec"]["template"]["spec"]["containers"]
        assert "agent0 cluster status --json" in container["readinessProbe"]["exec"]["command"][-1]
        assert "livenessProbe" not in container, "a log that is away would restart every worker"
    [projector] = [pod for name, pod in pods(objects) if name == "agent0-projector"]
    ports = {port["name"]: port["containerPort"] for part in projector["containers"] for port in part["ports"]}
    assert ports == {"metrics": 9464, "api": 8650}
    api = next(part for part in projector["containers"] if part["name"] == "api")
    assert api["readinessProbe"]["httpGet"] == {"path": "/healthz", "port": "api"}


def test_models_and_gpus_go_where_they_are_used(render: Render) -> None:
    deployments = named(render(*SETS["on GPUs"]), "Deployment")
    for role in ROLES:
        pod = deployments[f"agent0-{role}"]["spec"]["template"]["spec"]
        [container] = pod["containers"]
        gpus = container["resources"].get("limits", {}).get("nvidia.com/gpu")
        assert gpus == (1 if role in ("teacher", "student", "trainer") else None), role
        assert ("/models" in {mount["mountPath"] for mount in container["volumeMounts"]}) == bool(gpus), role


def test_work_due_scales_roles_and_nothing_sets_their_replicas_beside_it(render: Render) -> None:
    objects = render(*SETS["everything"])
    deployments, scaled = named(objects, "Deployment"), named(objects, "ScaledObject")
    assert set(scaled) == {f"agent0-{role}" for role, own in VALUES["roles"].items() if "scale" in own}
    for name, deployment in deployments.items():
        assert ("replicas" in deployment["spec"]) == (name not in scaled)
    for name, part in scaled.items():
        role, [trigger] = name.removeprefix("agent0-"), part["spec"]["triggers"]
        handlers = re.search(
            r'sum\(agent0_work\{namespace="ours",handler=~"([a-z_|]+)"\}\)', trigger["metadata"]["query"]
        )
        assert handlers and tuple(handlers[1].split("|")) == ROLES[role]
        assert trigger["metricType"] == "AverageValue", "KEDA falls back with no other"
        assert trigger["metadata"]["ignoreNullValues"] == "false", "no answer is not: nothing to do"
        assert int(trigger["metadata"]["threshold"]) == VALUES["roles"][role]["slots"]
        assert part["spec"]["minReplicaCount"] >= 1 and part["spec"]["fallback"]["replicas"] >= 1


def test_networks_let_in_nobody_but_whom_the_values_name(render: Render) -> None:
    closed = named(render(), "NetworkPolicy")
    assert "ingress" not in closed["agent0"]["spec"] and closed["agent0"]["spec"]["policyTypes"] == [
        "Ingress",
        "Egress",
    ]
    assert not closed["agent0-projector"]["spec"]["ingress"]
    assert {port["port"] for rule in closed["agent0"]["spec"]["egress"] for port in rule["ports"]} == {53, 4222}
    opened = named(render(*SETS["everything"]), "NetworkPolicy")
    asking = opened["agent0-models"]["spec"]["podSelector"]["matchExpressions"][0]["values"]
    assert set(asking) == {"projector", "teacher", "student", "trainer"}, "a verifier and a conductor ask no model"
    assert len(opened["agent0-projector"]["spec"]["ingress"]) == 2


def test_each_container_has_the_key_of_its_own_role(render: Render) -> None:
    users = {}
    for name, pod in pods(render()):
        secrets = {volume["name"]: volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume}
        for container in containers(pod):
            if keys := [m["name"] for m in container["volumeMounts"] if m["mountPath"] == "/etc/agent0/log"]:
                [users[name, container["name"]]] = [secrets[key] for key in keys]
    expected = {("agent0-projector", "api"): "api", ("agent0-projector", "projector"): "projector"}
    expected |= {(f"agent0-{role}", role): role for role in ROLES} | {("agent0-log-check", "log-check"): "projector"}
    assert expected.items() <= {key: user.removeprefix("agent0-key-") for key, user in users.items()}.items()
    assert [key for key, user in users.items() if user == "agent0-key-admin" and key[1] != "log-init"] == []
    assert set(expected.values()) | {"admin"} == set(USERS)


async def test_the_log_server_of_the_chart_takes_the_keys_that_we_make(render: Render, tmp_path: Path) -> None:
    keys, port = tmp_path / "keys", free_port()
    make_keys(keys, ["127.0.0.1"])
    config = named(render(*SETS["one server"]), "ConfigMap")["agent0-nats-config"]["data"]["nats.conf"]
    config = config.replace("/etc/nats-certs/nats", str(keys / "server")).replace("0.0.0.0:4222", f"127.0.0.1:{port}")
    config = config.replace('http: "0.0.0.0:8222"', "").replace('"/data"', json.dumps(str(tmp_path / "store")))
    (tmp_path / "nats.conf").write_text(config.replace("../nats-certs/nats", "keys/server"))

    def settings(role: str) -> Settings:
        env = {"AGENT0_NATS_URL": f"tls://127.0.0.1:{port}", "AGENT0_NATS__CREDENTIALS": str(keys / role / "user.nk")}
        env |= {"AGENT0_NATS__TLS_CA": str(keys / role / "ca.pem"), "AGENT0_ARTIFACTS__STORE": "nats"}
        return load("cluster", {"home": str(tmp_path / role), "nats.replicas": 1}, env)

    command = [binary(), "-c", tmp_path / "nats.conf"]
    with subprocess.Popen(command, env={"SERVER_NAME": "n"}, stderr=subprocess.DEVNULL) as server:
        try:
            await answering(port)
            await provision(settings("admin"))  # there is room for what the profile reserves
            for role in ("projector", "api", *ROLES):
                async with open_log(settings(role)) as log:
                    await check_log(settings(role), log, known_handlers().values())
        finally:
            server.terminate()


async def test_servers_join_by_certificates_that_name_where_they_are(render: Render, tmp_path: Path) -> None:
    config = named(render(), "ConfigMap")["agent0-nats-config"]["data"]["nats.conf"]
    routes = re.findall(r"nats://([a-z0-9.-]+):6222", config)
    make_keys(tmp_path / "keys", ["127.0.0.1", "agent0-nats", *routes])
    config = config.replace("/etc/nats-certs/nats", str(tmp_path / "keys" / "server"))
    config = config.replace("../nats-certs/nats", "keys/server")
    ports = [[free_port() for _ in ("clients", "routes", "monitor")] for _ in range(2)]
    async with AsyncExitStack() as stack:
        for number, (clients, joined, monitor) in enumerate(ports):
            own = config.replace("0.0.0.0:4222", f"127.0.0.1:{clients}").replace("0.0.0.0:6222", f"127.0.0.1:{joined}")
            own = own.replace("0.0.0.0:8222", f"127.0.0.1:{monitor}").replace('"/data"', f'"{tmp_path}/store-{number}"')
            others = ", ".join(f'"nats://127.0.0.1:{port[1]}"' for port in ports)
            (tmp_path / f"{number}.conf").write_text(re.sub(r"routes: .*", f"routes: [{others}]", own))
            command = [binary(), "-c", tmp_path / f"{number}.conf"]
            server = subprocess.Popen(command, env={"SERVER_NAME": f"n-{number}"}, stderr=subprocess.DEVNULL)
            stack.callback(server.wait)
            stack.callback(server.terminate)
        for _, _, monitor in ports:
            await answering(monitor)
            await until(lambda at=monitor: httpx2.get(f"http://127.0.0.1:{at}/routez").json()["routes"], "a route")  # type: ignore[misc]
            cluster = httpx2.get(f"http://127.0.0.1:{monitor}/varz").json()["cluster"]
            assert cluster["tls_required"] and cluster["tls_verify"]


def test_the_guide_names_each_server_that_is_joined(render: Render) -> None:
    config = named(render(), "ConfigMap")["agent0-nats-config"]["data"]["nats.conf"]
    [line] = re.findall(r"^agent0 cluster keys.*--at.*", (ROOT / "docs/guide/deployment.md").read_text(), re.MULTILINE)
    words = tell("bash", "-c", f"echo {line}").stdout.split()
    hosts = [word.removeprefix("--host=") for word in words if word.startswith("--host=")]
    assert hosts == ["agent0-nats", *re.findall(r"nats://([a-z0-9.-]+):6222", config)]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


async def answering(port: int) -> None:
    """Until something listens at ``port``."""

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    await until(listens, "the server of the log")


@pytest.mark.parametrize("case", BAD)
def test_helm_refuses_bad_values(chart: Path, case: str) -> None:
    done = tell(tool("helm"), "template", "a", chart, "--kube-version", f"{KUBERNETES}.0", "--set", BAD[case])
    assert done.returncode != 0 and "values don't meet the specifications" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ("log.replicas=5", "there are 3 servers"),
        ("log.url=nats://other:4222", "Either the log's servers are of this chart"),
        ("autoscaling.enabled=true", "autoscaling.prometheus is the address"),
    ],
)
def test_helm_says_what_contradicts(chart: Path, flags: str, why: str) -> None:
    done = tell(tool("helm"), "template", "a", chart, "--kube-version", f"{KUBERNETES}.0", "--set", flags)
    assert done.returncode != 0 and why in done.stderr, done.stderr
