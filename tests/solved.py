"""A small repository with a bug in it, work on it, and a model that plays turns which are written down."""

import json
from collections.abc import Mapping
from pathlib import Path

from agent0.chat_format import format_call

WRONG = b"""def total(values):
    result = 0
    for at in range(len(values) - 1):
        result += values[at]
    return result


def largest(values):
    if not values:
        return 0
    return max(values)
"""
RIGHT = WRONG.replace(b"range(len(values) - 1)", b"range(len(values))")
TESTS = b"""from sums import largest, total


def test_total():
    assert total([1, 2]) == 3


def test_largest():
    assert largest([3, 1]) == 3
"""
BROKEN: Mapping[str, bytes] = {"sums.py": WRONG, "tests/test_sums.py": TESTS}
SOUND: Mapping[str, bytes] = {**BROKEN, "sums.py": RIGHT}
EDIT = {"path": "sums.py", "old": "range(len(values) - 1)", "new": "range(len(values))"}
REPAIR = (f"The bound is off by one.\n{format_call('edit_file', EDIT)}", "Done. \\boxed{done}")
"""The turns of the reference."""
PLUGIN = '''"""A provider whose model plays the turns in a file, and notes which it was asked for."""

import json
import os
import signal
from pathlib import Path

from agent0.assembly.runtime.providers import Provider, provider
from agent0.infra.models.replay import ReplayedTurns


class Played:
    def __init__(self, actor, settings, artifacts):
        self._file = Path(actor.model)
        self.name = f"played/{self._file.stem}"

    async def generate(self, request):
        with self._file.with_suffix(".asked").open("a") as asked:
            asked.write(f"{request.turn}\\n")
        killing = self._file.with_suffix(".kill")
        if request.turn and killing.exists():
            killing.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        turns = json.loads(self._file.read_text())
        return await ReplayedTurns([turns[min(request.turn, len(turns) - 1)]]).generate(request)

    async def close(self):
        pass


provider(Provider("played", Played))
'''


def laid(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write ``files`` below ``folder``."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def content(folder: Path) -> dict[str, bytes]:
    """Every regular file below ``folder``."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def played(folder: Path, *turns: str) -> list[str]:
    """The options of a command whose model plays ``turns``."""
    (folder / "played.py").write_text(PLUGIN)
    (folder / "turns.json").write_text(json.dumps(turns))
    return [
        *("--profile", "scripted", "--provider", "played", "--model", str(folder / "turns.json")),
        *("--plugin", str(folder / "played.py")),
    ]
