"""Pages of docs/results/ that people write, with a part that a benchmark writes."""

from pathlib import Path

BEGIN, END = "<!-- measured -->\n", "<!-- end -->"
RESULTS = Path(__file__).parents[1] / "docs" / "results"


def write(name: str, found: str) -> None:
    """Put ``found`` between the marks of the page ``name``; what is around them stays."""
    page = RESULTS / name
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    page.write_text(f"{before}{BEGIN}{found}{END}{rest.partition(END)[2]}", encoding="utf-8")
