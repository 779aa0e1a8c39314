"""Every command of ``agent0``: its name, and the function that it is. A new one is a function and its line here."""

from collections.abc import Mapping

from agent0.cli.lazy_group import Noun

COMMANDS: Mapping[str, str | Noun] = {
    "backup": "log.backup:backup",
    "calibrate": "models.calibrate:calibrate",
    "chat": "models.chat:chat",
    "doctor": "system.doctor:doctor",
    "report": "evaluation.report:report",
    "restore": "log.backup:restore",
    "status": "system.status:status",
    "tutorial": "tutorial:tutorial",
    "up": "system.up:up",
    "view": "system.view:view",
    "api": Noun(
        "The API of `agent0 up`: its keys, and its description as OpenAPI.",
        {
            "openapi": "system.openapi:openapi",
            "key": Noun(
                "API keys. Without any key only requests of this machine are answered.",
                {
                    "add": "system.api:add",
                    "list": "system.api:list_",
                    "remove": "system.api:remove",
                },
            ),
        },
    ),
    "artifacts": Noun(
        "The artifact store: verify what events name, throw away what none names.",
        {
            "verify": "log.artifacts:verify",
            "gc": "log.artifacts:gc",
        },
    ),
    "batch": Noun(
        "A file of questions, answered row by row by any model, checkpoint or router strategy.",
        {
            "run": "batches.batch:run",
            "list": "batches.batch:list_",
        },
    ),
    "bench": Noun(
        "Score a student on benchmarks: rows lie in a folder you name, every item is an event.",
        {
            "list": "evaluation.bench_list:list_",
            "runs": "evaluation.bench_runs:runs",
            "run": "evaluation.bench:run",
            "compare": "evaluation.bench:compare",
            "controls": "evaluation.bench_controls:controls",
            "regression": "evaluation.regression:regression",
            "baseline": "evaluation.baseline:baseline",
            "report": "evaluation.bench_report:bench_report",
            "fetch": "evaluation.fetch:fetch",
        },
    ),
    "cluster": Noun(
        "Hosts that share a log: their processes, and keys for them.",
        {
            "keys": "system.cluster_keys:keys",
            "status": "system.cluster:status",
        },
    ),
    "config": Noun(
        "Settings: show, validate, explain.",
        {
            "show": "system.config:show",
            "validate": "system.validate:validate",
            "docs": "system.config:docs",
        },
    ),
    "curriculum": Noun(
        "The curriculum: what was asked for, how hard it was, how broad it stayed.",
        {
            "show": "tasks.curriculum:show",
            "draw": "tasks.curriculum_picture:draw",
        },
    ),
    "env": Noun(
        "Environments of others as sources of tasks: add, list, remove; families served as environments.",
        {
            "add": Noun(
                "Add an environment.",
                {
                    "gym": "environments.env:gym",
                    "harbor": "environments.env:harbor",
                    "openenv": "environments.env:openenv",
                    "tau2": "environments.env:tau2",
                    "verifiers": "environments.env:verifiers",
                },
            ),
            "list": "environments.env:list_",
            "serve": "environments.env:serve",
            "rm": "environments.env:rm",
        },
    ),
    "events": Noun(
        "The events of the log: follow, look up, search, count, verify, export, import, archive.",
        {
            "tail": "log.events:tail",
            "show": "log.events:show",
            "grep": "log.events:grep",
            "stats": "log.events:stats",
            "verify": "log.events:verify",
            "set-aside": "log.events:set_aside",
            "export": "log.events:export",
            "import": "log.events:import_",
            "archive": "log.events:archive",
        },
    ),
    "experiment": Noun(
        "Experiments: other rewards, verdicts or training from the log; ablation studies; comparisons of runs.",
        {
            "list": "experiments.experiment:list_",
            "show": "experiments.experiment:show",
            "reroute": "experiments.reroute:reroute",
            "rescore": "experiments.rescore:rescore",
            "reverify": "experiments.reverify:reverify",
            "retrain": "experiments.retrain:retrain",
            "purge-task": "experiments.retrain:purge_task",
            "compare": "experiments.compare:compare",
            "ablation": "experiments.ablation:ablation",
        },
    ),
    "failures": Noun(
        "Reactions that were given up (the dead letters).",
        {
            "list": "runs.failures:list_",
            "show": "runs.failures:show",
            "retry": "runs.failures:retry",
            "drop": "runs.failures:drop",
        },
    ),
    "family": Noun(
        "Task families: whether one is fit to train on; its tasks as folders that other frameworks run.",
        {
            "validate": "environments.family:validate",
            "export": "environments.family:export",
        },
    ),
    "handlers": Noun(
        "Reactions to events: list them, run some or all as a process.",
        {
            "list": "system.handlers:list_",
            "run": "system.handlers_run:run",
        },
    ),
    "log": Noun(
        "The event log: make or check streams and consumers.",
        {
            "init": "log.log:init",
            "check": "log.log:check",
        },
    ),
    "metrics": Noun(
        "Metrics for Prometheus: `agent0 metrics` prints them, `agent0 metrics serve` serves them.",
        {
            "show": "system.metrics:show",
            "serve": "system.metrics:serve",
        },
        default="show",
    ),
    "model": Noun(
        "Models by name, and checkpoints: the registry, what made them down to the events, and serving them elsewhere.",
        {
            "list": "models.registry:list_",
            "show": "models.registry:show",
            "card": "models.registry:card",
            "compare": "models.registry:compare",
            "ab": "models.comparisons:ab",
            "repeat": "models.comparisons:repeat",
            "exam": "models.comparisons:evaluate_protocol",
            "ensemble": "models.comparisons:ensemble",
            "rejudge": "models.rejudge:rejudge",
            "promote": "models.promotion:promote",
            "rollback": "models.promotion:rollback",
            "prune": "models.promotion:prune",
            "get": "models.stored:get",
            "rm": "models.stored:remove",
            "export": "models.serving:export",
            "push": "models.serving:push",
            "verify": "models.serving:verify",
            "train": "models.train:train",
            "lineage": "models.model:lineage",
            "check": "models.model:check",
        },
    ),
    "projections": Noun(
        "The tables (read models): list, query, rebuild.",
        {
            "list": "log.projections:list_",
            "show": "log.tables_at:show",
            "query": "log.projections:query",
            "lag": "log.projections:lag",
            "run": "log.projections:run",
            "rebuild": "log.projections:rebuild",
            "build": "log.tables_at:build",
            "rollback": "log.projections:rollback",
        },
    ),
    "prompt": Noun(
        "Prompts of teacher and student: list, show, compare by score.",
        {
            "list": "tasks.prompt:list_",
            "show": "tasks.prompt:show",
            "diff": "tasks.prompt:diff",
            "compare": "evaluation.prompt_compare:compare",
        },
    ),
    "questions": Noun(
        "Files of questions with answers that runs are trained on; what a teacher writes about documents.",
        {
            "check": "tasks.questions:check",
            "ledger": "tasks.questions:ledger",
            "write": "tasks.questions:write",
        },
    ),
    "reward": Noun(
        "Rewards: sets and their parts, the receipt of a task or an attempt, and cheats.",
        {
            "list": "tasks.reward:list_",
            "explain": "tasks.reward_receipt:explain",
            "hack-test": "tasks.hack_test:hack_test",
            "calibrator": "tasks.reward_receipt:calibrator",
        },
    ),
    "router": Noun(
        "Models that cost money, and those that stand in: budgets, strategies, decisions, kept answers.",
        {
            "strategies": "routing.strategies:strategies_",
            "route": "routing.ask:route",
            "ask": "routing.ask:ask",
            "calibrate": "routing.evaluate:calibrate",
            "evaluate": "routing.evaluate:evaluate",
            "compress": "routing.compress:compress",
            "explain": "routing.router:explain",
            "stats": "routing.router:stats",
            "cache": "routing.budget:cache",
            "budget": Noun(
                "Budgets: list them, read an invoice, raise or lower a cap.",
                {
                    "list": "routing.budget:list_",
                    "show": "routing.budget:show",
                    "set": "routing.budget:set_",
                },
            ),
        },
    ),
    "run": Noun(
        "Runs: start, watch, inspect results.",
        {
            "start": "runs.start:start",
            "resume": "runs.start:resume",
            "list": "runs.run:list_",
            "show": "runs.show:show",
            "fork": "runs.fork:fork",
            "diff": "runs.states:diff",
            "check": "runs.check:check",
            "diet": "runs.run:diet",
            "ledger": "runs.run:ledger",
            "why": "runs.why:why",
            "export": "runs.run:export",
            "hide": "runs.deletion:hide",
            "tag": "runs.deletion:tag",
            "note": "runs.deletion:note",
            "delete": "runs.deletion:delete",
            "archive": "runs.deletion:archive",
            "prune": "runs.deletion:prune",
            "watch": "runs.start:watch",
            "story": "runs.run:story",
            "pause": "runs.run:pause",
            "priority": "runs.run:priority",
            "cancel": "runs.run:cancel",
        },
    ),
    "sandbox": Noun(
        "The sandbox: check it, watch it, allow and deny, look at work folders.",
        {
            "check": "tools.sandbox_check:check",
            "snapshots": "tools.sandbox:snapshots",
            "diff": "tools.sandbox:diff",
            "restore": "tools.sandbox:restore",
            "top": "tools.sandbox:top",
            "allow": "tools.policy:allow",
            "deny": "tools.policy:deny",
            "list": "tools.policy:list_",
            "test": "tools.policy:test_",
        },
    ),
    "solve": Noun(
        "Work on a repository of your own: on a copy, checked, written once you accept it.",
        {
            "fix": "solving.solve:fix",
            "test": "solving.solve:test",
            "review": "solving.solve:review",
            "refactor": "solving.solve:refactor",
            "document": "solving.solve:document",
            "resume": "solving.solve:resume",
            "apply": "solving.solve:apply",
            "list": "solving.solve:list_",
        },
    ),
    "task": Noun(
        "Tasks that a run's teacher proposed, a person's verdicts on answers to them, and tasks mined from packages.",
        {
            "list": "tasks.task:list_",
            "show": "tasks.task:show",
            "review": "tasks.review:review",
            "lineage": "tasks.task:lineage",
            "nearest": "tasks.nearest:nearest",
            "mine": "tasks.mine:mine",
            "generate": "tasks.mine:generate",
            "unpack": "tasks.mine:unpack",
            "judge": "tasks.mine:judge",
        },
    ),
    "tiny": Noun(
        "The built-in small model: make it, read its card.",
        {
            "build": "models.tiny_build:build",
            "card": "models.tiny:card",
        },
    ),
    "tool": Noun(
        "Tools: list them, call one as a run would, serve calls, look at an MCP server.",
        {
            "list": "tools.tool:list_",
            "call": "tools.tool:call",
            "serve": "tools.serve:serve",
            "mcp": "tools.tool:mcp",
        },
    ),
    "trajectory": Noun(
        "Attempts with transcripts, tool calls, verdicts and rewards; export and import.",
        {
            "list": "tasks.trajectory:list_",
            "show": "tasks.trajectory:show",
            "search": "tasks.trajectory:search",
            "fork": "tasks.trajectory:fork",
            "export": "tasks.trajectory:export",
            "import": "tasks.trajectory:import_",
            "verify": "tasks.trajectory:verify",
        },
    ),
    "verify": Noun(
        "Verifiers: measured on labelled pairs, and one verdict explained.",
        {
            "answer": "tasks.verify:answer",
            "pairs": "tasks.verify:pairs",
        },
    ),
}
"""Functions as ``module:function`` below ``agent0.cli``, in the order in which help lists them."""
