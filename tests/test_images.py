"""Images: pinned, not root, without secrets, of files that exist; and how they are built and published."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from agent0.cli import build
from tests.deploy_tools import ROOT, tell, tool

DOCKERFILES = [ROOT / "infra" / "images" / name for name in ("Dockerfile", "sandbox.Dockerfile")]
ours = pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
BUILDS = json.loads((ROOT / "deploy" / "images.json").read_text())


def instructions(dockerfile: Path) -> Iterator[tuple[str, str]]:
    """(word, the rest), continued lines joined and comments left out."""
    text = re.sub(r"\\\n\s*", "", "\n".join(re.sub(r"^#.*", "", line) for line in dockerfile.read_text().splitlines()))
    for line in filter(None, text.splitlines()):
        yield (line.split()[0], line.partition(" ")[2].strip())


def stages(dockerfile: Path) -> dict[str, list[tuple[str, str]]]:
    """Name of a stage -> its instructions, the base as FROM, arguments before the first filled in."""
    found: dict[str, list[tuple[str, str]]] = {}
    arguments: dict[str, str] = {}
    for word, rest in instructions(dockerfile):
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            for key, value in arguments.items():
                base = base.replace(f"${{{key}}}", value)
            found[name or "last"] = [("FROM", base)]
        elif not found:
            arguments.update([rest.split("=", 1)])
        else:
            [*found.values()][-1].append((word, rest))
    return found


@ours
def test_bases_are_pinned_by_digest(dockerfile: Path) -> None:
    known = stages(dockerfile)
    bases = {steps[0][1] for steps in known.values()} - set(known) - {"scratch"}
    assert bases and all(re.fullmatch(r"python:3\.11-slim-bookworm@sha256:[0-9a-f]{64}", base) for base in bases)
    assert len(bases) == 1


@ours
def test_what_runs_is_no_root_and_has_no_tools_of_the_build(dockerfile: Path) -> None:
    known = stages(dockerfile)
    last = [BUILDS["target"][name]["target"] for name in BUILDS["group"]["default"]["targets"]]
    for name in last if "core" in known else ["last"]:
        chain = [known[name]]
        while chain[-1][0][1] in known:
            chain.append(known[chain[-1][0][1]])
        steps = [step for stage in reversed(chain) for step in stage]
        users = [rest for word, rest in steps if word == "USER"]
        assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", users[-1]), name
        assert not any(word == "RUN" and "pip" in rest for word, rest in steps), name
        copies = [rest for word, rest in steps if word == "COPY"]
        assert copies and all(rest.startswith("--from=") for rest in copies), name


@ours
def test_no_secret_goes_in_and_nothing_is_added_from_elsewhere(dockerfile: Path) -> None:
    for word, rest in instructions(dockerfile):
        assert word not in ("ADD", "MAINTAINER", "SHELL"), rest
        if word in ("ARG", "ENV"):
            assert not re.search(r"PASSWORD|SECRET|API_KEY|CREDENTIAL", rest), rest
        if word == "RUN" and "apt-get install" in rest:
            assert "--no-install-recommends" in rest and "rm -rf /var/lib/apt/lists/*" in rest
        if word == "RUN" and re.search(r"pip install", rest):
            assert "--require-hashes" in rest or re.search(r"-c \S*constraints.txt", rest), rest


@ours
def test_what_is_copied_exists_and_nothing_else_is_let_in(dockerfile: Path) -> None:
    words = [rest.split() for word, rest in instructions(dockerfile) if word == "COPY" and "--from" not in rest]
    copied = {name for source in words for name in source[:-1]}
    assert all((ROOT / name).exists() for name in copied)
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied <= let_in
    assert dockerfile.name != "Dockerfile" or copied == let_in


def test_each_image_is_built_for_both_architectures_with_its_bill_of_materials() -> None:
    targets = BUILDS["target"]
    known = stages(DOCKERFILES[0])
    for name in (*BUILDS["group"]["default"]["targets"], *BUILDS["group"]["gpu"]["targets"]):
        build = {**targets["image"], **targets[name]}
        assert build["target"] in known and (ROOT / build["dockerfile"]).is_file()
        assert build["tags"] == [f"${{REPOSITORY}}:${{VERSION}}-{name}"]
        assert {"type=sbom", "type=provenance,mode=max"} == set(build["attest"])
        assert "linux/amd64" in build["platforms"]
        assert name == "train-gpu" or "linux/arm64" in build["platforms"]
        assert set(build.get("args", {})) <= {rest.split("=")[0] for w, rest in known["train-packages"] if w == "ARG"}
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version and BUILDS["variable"]["VERSION"]["default"] == version[1]


def test_images_of_others_have_versions() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"].values()
    for image in {service["image"] for service in services if "build" not in service}:
        assert re.search(r":v?\d+\.\d+\.\d+(-alpine)?$", image), image


@ours
def test_hadolint_has_nothing_to_say(dockerfile: Path) -> None:
    done = tell(tool("hadolint"), "--failure-threshold", "info", dockerfile)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("profile", ["local", "gpu", "cluster", "local,observability", "local,ollama"])
def test_compose_itself_reads_its_file(profile: str) -> None:
    passwords = {f"NATS_{role}_PASSWORD": "p1" for role in ("ADMIN", "APP", "READER")}
    done = tell(tool("docker-compose"), "config", "--format", "json", env={**passwords, "COMPOSE_PROFILES": profile})
    assert done.returncode == 0, done.stderr
    assert "log-init" in json.loads(done.stdout)["services"]
    refused = tell(tool("docker-compose"), "config", env={"COMPOSE_PROFILES": profile, "NATS_APP_PASSWORD": ""})
    assert refused.returncode != 0 and "see the first lines of docker-compose.yml" in refused.stderr


def scripts() -> list[Path]:
    return [*(ROOT / "deploy").glob("*.sh"), *(ROOT / "deploy").glob("slurm/*")]


@pytest.mark.parametrize("script", scripts(), ids=lambda path: path.name)
def test_commands_in_scripts_exist(script: Path) -> None:
    code = "\n".join(re.sub(r"(^|\s)#.*", "", line) for line in script.read_text().splitlines())
    called = re.findall(
        r"(?:^\s*|[|(&;=]|run --rm cli|compose exec \w+|--|step(?: \S+)?) ?agent0 ([a-z]+) ([a-z-]+)", code, re.M
    )
    assert len(called) > 1
    for noun, verb in called:
        shown = CliRunner().invoke(build(), [noun, verb, "--help"])
        assert shown.exit_code == 0, (noun, verb)


@pytest.mark.parametrize("script", scripts(), ids=lambda path: path.name)
def test_scripts_are_read_by_bash_and_shellcheck(script: Path) -> None:
    assert "set -euo pipefail" in script.read_text()
    assert subprocess.run(["bash", "-n", script], timeout=20).returncode == 0
    done = tell(tool("shellcheck"), "--severity", "style", script)
    assert done.returncode == 0, done.stdout
