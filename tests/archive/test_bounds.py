"""What of an archive is parsed is bounded, and what is no event, header, digest or name is refused or names nothing."""

import json
from pathlib import Path

import pytest

from agent0.errors import LogError, NotFoundError
from agent0.events.base import decode
from agent0.events.values import Artifact
from agent0.infra.integrity import archive as archives
from agent0.infra.log.restore import place_of
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.provenance import artifact_refs
from agent0.provenance.artifact_refs import named, named_within
from agent0.provenance.hash_chain import Chain
from agent0.tools.snapshots import MEDIA
from tests.archive.test_hostile import DEEP


@pytest.mark.parametrize("kind", ["AlarmRaised", "LogSealed", "LogContinued", "EventRedacted"])
def test_a_body_that_is_nested_deeply_is_no_event(kind: str) -> None:
    body = b'{"id":"i","type":"%s","run":"log","task":"-","attempt":"-","data":%s' % (kind.encode(), DEEP)
    Chain().feed(1, body)  # its seal says that it was changed
    with pytest.raises(ValueError, match="nested too deeply"):
        decode(body)
    with pytest.raises(LogError, match="Event 1 cannot be read"):
        place_of(1, body)


@pytest.mark.parametrize("id", ["a\r\nNats-Rollup: all", "", "a b", 7, None, "\ud800"])
def test_an_id_that_is_no_header_is_refused(id: object) -> None:
    raw = {"id": id, "type": "AlarmRaised", "run": "r1", "task": "-", "attempt": "-", "data": {}}
    with pytest.raises(LogError, match="Event 1 cannot be read"):
        place_of(1, json.dumps(raw).encode())


@pytest.mark.parametrize("value", ["\ud800", None, [], 1.5, "x" * 64])
def test_what_continues_a_log_from_no_digest_continues_nothing(value: object) -> None:
    raw = {"id": "i", "type": "LogContinued", "version": 1, "run": "log", "data": {"before": 1, "seal": value}}
    chain = Chain()
    chain.feed(1, json.dumps(raw, separators=(",", ":")).encode())
    assert chain.digest == "" and len(chain.close()) == 64


@pytest.mark.parametrize("size", ["x", None, [], 1e400, {}])
def test_an_artifact_that_is_badly_named_names_nothing(tmp_path: Path, size: object) -> None:
    folder = Artifact(sha256="a" * 64, size=1, media=MEDIA)
    assert [*named_within(folder, json.dumps({"file": ["b" * 64, size]}).encode())] == []
    assert [*named([{"sha256": "a", "size": size, "media": "x"}])] == []
    [odd] = named({"sha256": "\ud800", "size": 1, "media": size})
    with pytest.raises(NotFoundError, match="is no sha256 digest"):
        FileArtifacts(tmp_path).get(odd)


@pytest.mark.parametrize("name", ["previous", "sha256", "created"])
def test_a_seal_of_text_that_is_no_unicode_differs(name: str) -> None:
    data = {"first": 1, "last": 1, "sha256": "0" * 64, "previous": "", name: "\ud800"}
    raw = {"id": "i", "type": "LogSealed", "version": 1, "run": "log", "data": data}
    chain = Chain()
    assert chain.feed(1, b"{}") == []
    assert {one.problem for one in chain.feed(2, json.dumps(raw, separators=(",", ":")).encode())} >= {"changed"}
    assert len(chain.close()) == 64


@pytest.mark.parametrize("media", ["application/json", "application/jsonl"])
def test_what_is_parsed_of_an_artifact_is_bounded(media: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are parsed one by one: many of them are not too much, one of them may be."""
    monkeypatch.setattr(artifact_refs, "MOST_MARKS", 20)
    other, one = (Artifact(sha256=name * 64, size=9, media=media) for name in "ab")
    line = other.model_dump_json().encode()
    assert [*named_within(one, line)] == [other]
    assert [*named_within(one, b"\n".join([line] * 9))] == ([other] * 9 if media.endswith("l") else [])
    assert [*named_within(one, b"[" + b"[]," * 20 + line + b"]")] == []
    assert [*named_within(one, b"{" + line)] == []


def test_an_archive_that_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    data = b"[" + b"0," * archives.MOST_MARKS + b"0]"
    artifact = Artifact(sha256=archives.hashlib.sha256(data).hexdigest(), size=len(data), media="application/json")
    with archives.ArchiveWriter(tmp_path / "log") as writer, pytest.raises(LogError, match="brackets and commas"):
        writer.add_artifact(artifact, data)
