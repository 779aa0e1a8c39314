"""The process that carries one cell of a grid: ``python -m agent0.cli.experiments.worker_ablation_run FOLDER``.

It says on stdout how far it is, and stops cleanly where its stdin ends: whoever started it has died.
"""

import asyncio
import signal
import sys
from pathlib import Path


async def _carried(folder: Path) -> None:
    from agent0.assembly.ablations.ablation_run import carry_cell
    from agent0.cli.console import stops

    loop = asyncio.get_running_loop()
    work = asyncio.create_task(carry_cell(folder, _tell))
    for number in stops():
        loop.add_signal_handler(number, work.cancel)
    reader = asyncio.StreamReader()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    orphaned = asyncio.create_task(reader.read())
    orphaned.add_done_callback(lambda _: work.cancel())
    try:
        await work
    finally:
        orphaned.cancel()
        pipe.close()


def _tell(text: str, left_s: float | None) -> None:
    from agent0.assembly.ablations.ablation_run import line

    try:
        sys.stdout.write(f"{line(text, left_s)}\n")
        sys.stdout.flush()
    except BrokenPipeError:  # nobody listens any more, and stdin says so, too
        pass


def main() -> None:
    """Carry the cell whose folder is the one argument; every error is one paragraph and an exit code."""
    from agent0.cli import known
    from agent0.cli.console import complain, defect

    try:
        asyncio.run(_carried(Path(sys.argv[1])))
    except asyncio.CancelledError:
        sys.exit(128 + signal.SIGTERM)
    except (Exception, BaseExceptionGroup) as error:
        said = known(error) or defect(error)
        complain(said)
        sys.exit(said.kind.exit_code)


if __name__ == "__main__":
    main()
