"""What commands that score or report take alike: the folder of the rows, and where a page is written."""

from pathlib import Path
from typing import Annotated

import typer

from agent0.cli import console, flags
from agent0.errors import ConfigError

Data = Annotated[Path, typer.Option(envvar="AGENT0_BENCHMARKS", help="Folder with the rows.")]
HERE = Path("benchmarks-data")
Out = Annotated[
    str,
    typer.Option(
        "--out", "-o", metavar="FILE", callback=console.in_folder, help="Where to write; '-': standard output."
    ),
]


def written(text: str, out: str, name: str) -> Path:
    """Write a page where the user wants it, else among the reports of the data folder.

    Raises:
        ConfigError: its folder does not exist, or it cannot be written there.
    """
    path = Path(out) if out else flags.settings().home / "reports" / name
    if out in ("", name):
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            why = f"The folder {path.parent} cannot be made: {error.strerror}."
            raise ConfigError(f"{path} cannot be written.", why, "Name another place: --out FILE") from error
    return console.write(path, text)
