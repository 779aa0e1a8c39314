"""The process that trains one base model of a study: ``python -m agent0.cli.experiments.worker_base FOLDER SEED MIX``,
MIX a file.

It writes its progress to standard output, and ends where its standard input does: its parent has died.
"""

import sys
from pathlib import Path

from agent0.assembly.ablations.base_models import train_base


def main() -> None:
    """Train the base model into a folder that counts only once this process has ended well."""
    train_base(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.stdout)


if __name__ == "__main__":
    main()
