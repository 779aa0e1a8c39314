"""The tutorial notebook is executed, cell by cell, in a kernel: nothing fails, and what it shows is shown.

``python -m tests.test_tutorial`` executes it anew and stores what it shows.
"""

import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "tutorial.ipynb"


def executed(folder: Path) -> NotebookNode:
    """The notebook, executed in ``folder``; a cell that fails raises."""
    notebook = nbformat.read(PAGE, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def kinds(notebook: NotebookNode) -> list[list[str]]:
    """Of each cell with code: the kinds of what it shows (printed lines are one, however many)."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [
        sorted({kind for output in cell.outputs for kind in output.get("data", {output.output_type: ""})})
        for cell in cells
    ]


def shown(notebook: NotebookNode) -> str:
    """Everything that is shown as HTML."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return "".join(output.get("data", {}).get("text/html", "") for output in outputs)


# jupyter_client and ipykernel open sockets and loops of their own, and leave some to the garbage collector
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_notebook_runs_and_shows_what_it_is_stored_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("AGENT0_RUN__ITERATIONS", "1")  # of 2, and 6 items of 24, so that it is quicker
    for split in ("VALIDATION", "TEST"):
        monkeypatch.setenv(f"AGENT0_RUN__EVALUATION__{split}", "6")
    stored, found = nbformat.read(PAGE, as_version=4), executed(tmp_path)
    assert kinds(found) == kinds(stored)
    for notebook in (stored, found):
        assert "<svg" in shown(notebook) and "<b>assistant</b>" in shown(notebook)
    assert (tmp_path / "curve.csv").is_file() and str(Path.home()) not in PAGE.read_text(encoding="utf-8")


def write() -> None:
    """Execute the notebook and store what it shows, without what differs from machine to machine."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        notebook = executed(Path(folder))
    for cell in notebook.cells:
        cell.metadata = NotebookNode()
    notebook.metadata = NotebookNode(
        {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
        | {"language_info": {"name": "python"}}
    )
    nbformat.write(notebook, PAGE)


if __name__ == "__main__":
    sys.exit(write())
