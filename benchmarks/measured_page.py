"""Pages of docs/results/ that people write, with a part that a benchmark writes."""

from pathlib import Path

BEGIN, END = "<!-- measured -->\n", "<!-- end -->"
RESULTS = Path(__file__).parents[1] / "docs" / "results"


def write(name: str, found: str, part: str = "") -> None:
    """Put ``found`` between the marks of the page ``name``, those of ``part`` where it has several; what is around them
    stays."""
    page, begin = RESULTS / name, BEGIN.replace("measured", f"measured: {part}") if part else BEGIN
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    page.write_text(f"{before}{begin}{found}{END}{rest.partition(END)[2]}", encoding="utf-8")
