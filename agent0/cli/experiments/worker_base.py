"""The process that teaches one base of a grid: ``python -m agent0.cli.experiments.worker_base FOLDER SEED MIX``, a
file.

It says on stdout how far it is, and ends where its stdin does: whoever started it has died.
"""

import os
import sys
import threading
import time
from pathlib import Path

EVERY = 20
"""Steps between two lines."""


def _watch() -> None:
    while os.read(0, 1024):  # not sys.stdin, whose lock would be held when this process ends by itself
        pass
    os._exit(1)


def main() -> None:
    """Make the model in a folder of which nothing counts until this process ended well."""
    from agent0.assembly.ablations.ablation_run import line
    from infra.tiny.build import build, read_mix

    threading.Thread(target=_watch, daemon=True).start()
    began = time.monotonic()

    def tell(done: int, total: int, _loss: float) -> None:
        if done % EVERY == 0:
            left = (time.monotonic() - began) / done * (total - done)
            sys.stdout.write(f"{line(f'step {done} of {total}, about {left:.0f} s left', left)}\n")
            sys.stdout.flush()

    build(Path(sys.argv[1]), seed=int(sys.argv[2]), mix=read_mix(Path(sys.argv[3])), progress=tell)


if __name__ == "__main__":
    main()
