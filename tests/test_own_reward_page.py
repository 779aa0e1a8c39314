"""The page about one's own reward is run: its file is loaded, its commands go in its order, its words are said. Sizes
are smaller here, and no model is trained."""

import re
import shlex
from pathlib import Path

import pytest

from tests.kept_open import attached
from tests.plugin_files import forgotten
from tests.terminal import Said
from tests.terminal import agent0 as call

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "guide" / "your-own-reward.md"
FILE = re.compile(r"```python\n# file: (my_reward\.py)\n(.*?)```", re.S)
SMALLER = {
    "run start": ("--tasks", "3", "--attempts", "2", "--iterations", "1"),
    "experiment ablation": (
        "--profile",
        "scripted",
        "--seeds",
        "0",
        "--set",
        "run.iterations=1",
        "--set",
        "run.tasks=2",
    ),
}
FEW = ("--set", "run.evaluation.validation=2", "--set", "run.evaluation.test=2", "--set", "sandbox.workers=1")


def commands() -> list[str]:
    """What the page has behind a ``$``, in order, lines that go on put together."""
    text = PAGE.read_text(encoding="utf-8").replace("\\\n", "")
    return re.findall(r"^\$ agent0 (.+)$", text, re.MULTILINE)


def test_the_page_and_the_readme_have_the_same_file() -> None:
    """The README leaves out the first docstring."""
    page, readme = (FILE.search(path.read_text(encoding="utf-8")) for path in (PAGE, ROOT / "README.md"))
    assert page and readme
    said = [line for line in page[2].splitlines()[1:] if line]
    assert said == [line for line in readme[2].splitlines() if line] and len(said) <= 10


@pytest.mark.slow
def test_its_commands_do_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = FILE.search(PAGE.read_text(encoding="utf-8"))
    assert found
    (tmp_path / found[1]).write_text(found[2])
    monkeypatch.chdir(tmp_path)
    said: dict[str, Said] = {}
    with forgotten(), attached(tmp_path / "data") as home:
        for line in commands():
            words = shlex.split(line)
            name = " ".join(words[:2])
            more = SMALLER.get(name, ())
            said[name] = call(*words, *more, *(FEW if more else ()), home=home)
            assert said[name].code == 0, (line, said[name].err)
    assert list(said) == ["reward hack-test", "run start", "experiment rescore", "experiment ablation"]
    assert re.fullmatch(r"No policy of \d+ earns more than honest work\.\n", said["reward hack-test"].out)
    assert (
        "receipts change" in said["experiment rescore"].out and "Nothing is written" in said["experiment rescore"].err
    )
    assert re.search(r"To do: 2 runs, 2 at a time, \d+ attempts at most; about", said["experiment ablation"].err)
    first = said["experiment ablation"].out.splitlines()[0]
    assert first.startswith("Does mine beat base? ") and "one seed: nothing may be claimed" in first
    assert (tmp_path / "data" / "grids" / "base-mine-scripted" / "page.html").is_file()
