"""The process that executes one ablation run: ``python -m agent0.cli.experiments.worker_ablation_run FOLDER``.

It writes its progress to standard output, and stops cleanly where its standard input ends: its parent has died.
"""

import asyncio
import signal
import sys
from pathlib import Path

from agent0.assembly.ablations.ablation_run import serve_ablation_run
from agent0.cli import user_error
from agent0.cli.console import complain, stops
from agent0.cli.defects import defect


def main() -> None:
    """Execute the ablation run whose folder is the one argument; an error is one paragraph and an exit code."""
    try:
        asyncio.run(serve_ablation_run(Path(sys.argv[1]), sys.stdout, stops()))
    except asyncio.CancelledError:
        sys.exit(128 + signal.SIGTERM)
    except (Exception, BaseExceptionGroup) as error:
        reported = user_error(error) or defect(error)
        complain(reported)
        sys.exit(reported.kind.exit_code)


if __name__ == "__main__":
    main()
