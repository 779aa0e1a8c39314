"""Folders of processes that were killed are removed by the next one; those that somebody holds stay."""

import subprocess
import sys
from pathlib import Path

from agent0.infra.storage.scratch import ScratchFolder, sweep

HOLDS = """
import sys, time
from pathlib import Path
from agent0.infra.storage.scratch import ScratchFolder

folder = ScratchFolder(Path(sys.argv[1]))
(folder.path / "tables.db").write_bytes(b"x")
print(folder.path, flush=True)
time.sleep(600)
"""


def test_what_a_killed_process_left_is_removed_and_what_is_held_stays(tmp_path: Path) -> None:
    parent = tmp_path / "cache" / "past"
    sweep(parent)
    assert not parent.exists()
    process = subprocess.Popen([sys.executable, "-c", HOLDS, str(parent)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    left = Path(process.stdout.readline().strip())
    own = ScratchFolder(parent)
    assert left.is_dir() and left != own.path
    process.kill()
    process.wait()
    process.stdout.close()
    assert (left / "tables.db").is_file()
    (parent / "elsewhere").symlink_to(tmp_path)
    sweep(parent)
    assert not left.exists() and own.path.is_dir() and tmp_path.is_dir()
    own.close()
    assert not own.path.exists()
