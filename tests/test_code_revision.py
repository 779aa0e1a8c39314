"""Events name the commit that wrote them, and whether the code was that of the commit."""

import subprocess
from pathlib import Path

import pytest

from agent0.assembly.runtime import stamping
from agent0.assembly.runtime.stamping import CodeRevision, code_rev

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the tests run outside of a checkout")
def test_the_revision_is_the_commit_of_the_checkout() -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=ROOT, check=False).returncode
    found = CodeRevision.read(code_rev.__wrapped__())
    assert (found.commit, found.dirty) == (head.stdout[:12], bool(changed))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one file in the place of this one."""
    code = tmp_path / "agent0" / "assembly" / "runtime" / "stamping.py"
    code.parent.mkdir(parents=True)
    code.write_text("a = 1\n")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.setattr(stamping, "__file__", str(code))
    return code


def test_a_change_that_no_commit_has_is_named(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read() -> CodeRevision:
        return CodeRevision.read(code_rev.__wrapped__())

    clean = read()
    assert clean.commit and clean.dirty is False
    (checkout.parent / "notes.txt").write_text("followed by nobody")
    assert read() == clean
    subprocess.run(["git", "pack-refs", "--all"], cwd=checkout.parent, check=True)
    assert read() == clean, "a packed ref is found"
    checkout.write_text("a = 2\n")
    assert read().dirty is True and read().commit == clean.commit
    monkeypatch.setenv("PATH", "/nowhere")
    assert (read().commit, read().dirty) == (clean.commit, None)


def test_what_earlier_versions_recorded_is_read() -> None:
    assert CodeRevision.read("0.1.0+0f3c2d1abcde") == CodeRevision("0.1.0", "0f3c2d1abcde", None)
    assert CodeRevision.read("0f3c2d1") == CodeRevision("0f3c2d1", "", None)
    assert CodeRevision.read("") == CodeRevision("", "", None)
