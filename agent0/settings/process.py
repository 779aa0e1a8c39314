"""Settings of a process: the log, handlers, sandbox, web, MCP servers, benchmarks, models."""

from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, SecretStr

from agent0.errors import bare_address
from agent0.settings.base import ADDRESSES, LARGEST, MODEL_ADDRESS, WEB_ADDRESS, Frozen
from agent0.settings.roles import ActorConfig

Actor = TypeVar("Actor", bound=ActorConfig)
USUAL_OLLAMA = "http://127.0.0.1:11434"


class NatsSettings(Frozen):
    """The log's server. Empty url: an embedded nats-server with its data under ``home``."""

    url: str = Field("", pattern=ADDRESSES, description="external server; AGENT0_NATS_URL sets it")
    user: str = Field("", description="user of the external server")
    password: SecretStr = Field(SecretStr(""), description="its password (environment or file only)")
    credentials: Path | None = Field(None, description="file with the user's key, or NATS .creds file")
    tls_ca: Path | None = Field(None, description="CA file for TLS")
    replicas: int = Field(1, ge=1, le=5, description="stream replicas (a cluster: 3)")
    duplicate_window_s: float = Field(
        600, gt=0, le=31_536_000, description="server-side deduplication window; fixed at log init"
    )
    max_bytes: int = Field(8 << 30, gt=0, le=LARGEST, description="largest size of the event stream")
    seal_every: int = Field(5000, ge=1, le=1_000_000, description="events of a sealed segment of the log, at most")


class HandlerSettings(Frozen):
    """How handler processes consume events: redelivery, retries, concurrency and group commit."""

    ack_wait_s: float = Field(30, gt=0, le=86_400, description="redelivery after a process died")
    max_deliver: int = Field(10, ge=1, le=1_000_000, description="failed deliveries before a reaction is given up")
    max_crashes: int = Field(
        20,
        ge=1,
        le=1_000_000,
        description="ends of the process during one reaction, after the first 3, before it waits",
    )
    retry_delay_s: float = Field(1, gt=0, le=3600, description="first delay before another try; doubles, at most 60 s")
    in_flight: int = Field(
        0,
        ge=0,
        le=100_000,
        description="reactions at once in a process, of every unordered handler; 0: as each declares",
    )
    commit_ms: float = Field(3, ge=0, le=60_000, description="how long effects are gathered into one atomic batch")
    snapshot_events: int = Field(
        10_000, ge=0, le=LARGEST, description="events of a run between two snapshots of its state; 0 writes none"
    )


class SandboxSettings(Frozen):
    """Backend, pool size and limits of the sandbox that the student's tools and the verifiers use."""

    backend: Literal["auto", "zygote-bwrap", "zygote-docker", "bwrap-cold", "docker-cold"] = Field(
        "auto", description="auto: the first, in this order, that passes its self-test; there is no weaker one"
    )
    workers: int = Field(2, ge=1, le=1024, description="pool slots (fork servers)")
    calls: int = Field(2, ge=1, le=64, description="calls at once on a pool slot")
    queue: int = Field(512, ge=1, le=1_000_000, description="calls that may wait; one more is refused as busy")
    wall_s: float = Field(5, gt=0, le=3600, description="wall limit of a call, seconds")
    verifier_wall_s: float = Field(30, gt=0, le=3600, description="the same for programs that a verifier runs")
    mem_mib: int = Field(512, ge=64, le=16_777_216, description="memory limit of a call, MiB")
    cgroup: Literal["auto", "never"] = Field(
        "auto", description="auto: memory is also limited by a cgroup where one may"
    )
    engine: Literal["docker", "podman"] = Field("docker", description="container engine of the docker backends")
    image: str = Field("agent0-sandbox", description="image of the docker backends")
    runtime: Literal["", "runsc"] = Field("", description="runsc: gVisor under the docker backends")


class WebSettings(Frozen):
    """Network access of the tools http_request and web_search. Off by default."""

    enabled: bool = Field(False, description="start the proxy process for http_request")
    timeout_s: float = Field(10, gt=0, le=600, description="one request, redirects included")
    max_bytes: int = Field(1 << 20, ge=1, le=1 << 30, description="largest body, both ways")
    redirects: int = Field(3, ge=0, le=20, description="redirects followed; each is checked anew")
    search: Literal["", "searxng", "brave"] = Field("", description="provider of web_search; empty: off")
    search_url: str = Field("", pattern=WEB_ADDRESS, description="its server; empty: the provider's own")
    search_key: SecretStr = Field(SecretStr(""), description="its key (environment or file only)")


class McpServer(Frozen):
    """One MCP server. ``stdio`` servers run in the sandbox; ``http`` ones are used only where ``trust`` is the digest
    of their tool list."""

    transport: Literal["stdio", "http"] = Field("stdio", description="stdio: runs inside the sandbox")
    command: tuple[str, ...] = Field((), description="stdio: program and arguments")
    files: Path | None = Field(None, description="stdio: folder laid into its work folder")
    url: str = Field("", pattern=WEB_ADDRESS, description="http: address")
    trust: str = Field("", description="sha256 of its tool list; `agent0 tool mcp NAME` shows it")
    key_env: str = Field(
        "", pattern=r"^([A-Za-z_]\w*)?$", description="http: environment variable that holds its key (a bearer token)"
    )


class McpSettings(Frozen):
    """MCP servers as a source of tools. None by default."""

    servers: dict[str, McpServer] = Field(default_factory=dict, description="name -> server")


class ArtifactSettings(Frozen):
    """Where contents are that are too large for an event: the data folder, and behind it what all hosts share."""

    store: str = Field(
        "folder",
        pattern=r"^(folder|nats|s3://[a-z0-9][a-z0-9.-]{2,62}(/[A-Za-z0-9_./-]+)?)$",
        description="folder: the data folder alone, which all hosts then share; for hosts that share none nats, the "
        "log's servers, or s3://BUCKET/FOLDER, whose store and keys the usual AWS_ variables name",
    )
    max_bytes: int = Field(64 << 30, gt=0, le=LARGEST, description="nats: largest size of all artifacts there")


class BenchmarkSettings(Frozen):
    """Where the rows of benchmarks are, for scoring and for decontamination of generated tasks."""

    folder: Path | None = Field(None, description="folder with the rows; AGENT0_BENCHMARKS sets it")


class ModelSettings(Frozen):
    """Threads, batch size and server address of the models in this process."""

    threads: int = Field(
        0,
        ge=0,
        le=4096,
        description="threads of a model or training process; 0: every processor's, and one of a model under 32 MiB or "
        "on a GPU",
    )
    max_batch: int = Field(256, ge=1, le=1_000_000, description="largest generation batch")
    kept_mib: int = Field(
        512,
        ge=0,
        le=1 << 22,
        description="memory for keys and values of earlier turns, of a language model on a CPU: where many long "
        "conversations do not fit, every turn reads its own again",
    )
    ollama_url: str = Field(USUAL_OLLAMA, pattern=MODEL_ADDRESS, description="ollama server")

    def ollama_address(self, actor: ActorConfig) -> str:
        """Where the Ollama of ``actor`` is: what these settings say, else what its run was started with."""
        return actor.base_url if actor.base_url and self.ollama_url == USUAL_OLLAMA else self.ollama_url

    def addressed(self, actor: Actor) -> Actor:
        """``actor`` with the address of its Ollama, where that is not the usual one and no password stands in it: a
        server on another network is remote, whatever its models are called."""
        url = self.ollama_url
        if actor.provider != "ollama" or actor.base_url or url in (USUAL_OLLAMA, "") or bare_address(url) != url:
            return actor
        return actor.model_copy(update={"base_url": url})


class ApiSettings(Frozen):
    """The server of `agent0 up` and `agent0 view`: where it listens, whom it answers, what it takes."""

    host: str = Field("127.0.0.1", description="address to listen on; any but a loopback one needs a key")
    port: int = Field(8650, ge=0, le=65535, description="port; 0 takes a free one")
    hosts: tuple[str, ...] = Field((), description="other names under which browsers may reach it")
    max_body: int = Field(1 << 24, ge=1024, le=1 << 30, description="largest request body, bytes")
    changes_per_minute: int = Field(
        120, ge=0, le=1_000_000, description="requests a minute of one key that start or change something; 0: no limit"
    )
    request_s: float = Field(
        20, gt=0, le=3600, description="seconds in which the head of a request must come, and again its body"
    )
    connections_per_address: int = Field(
        64, ge=1, le=10_000, description="connections of one address that wait, and its requests without a key, at once"
    )


class TelemetrySettings(Frozen):
    """What `agent0 up` sends other systems. Nothing by default; a collector never gets prompts or answers."""

    otlp_url: str = Field("", pattern=WEB_ADDRESS, description="OTLP/HTTP collector that gets spans")
    webhook_url: str = Field("", pattern=WEB_ADDRESS, description="address that gets alarms and ends of runs")
    webhook_secret: SecretStr = Field(SecretStr(""), description="secret that signs them; better in the environment")
    slack_url: SecretStr = Field(SecretStr(""), description="Slack's incoming webhook; better in the environment")
    discord_url: SecretStr = Field(SecretStr(""), description="Discord's webhook; better in the environment")
    calm_s: float = Field(
        300, ge=0, le=86_400, description="seconds without being raised again until the end of an alarm is sent"
    )
    log_json: bool = Field(
        False, description="logs of the process as JSON lines on stderr, alarms and ends of runs among them"
    )
