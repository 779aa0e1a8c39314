"""The widgets in JupyterLab, as somebody at a browser sees them: ``check_lab.py BROWSER``; ``SHOT`` keeps a picture."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect, sync_playwright

from tests.api.served import stored, viewed
from tests.handles import served
from tests.story import whole_run
from tests.story_hostile import hostile_words
from tests.test_report import poisoned

SIZES = {"run.iterations": 6, "run.tasks": 8, "run.evaluation.validation": 24}
PATIENCE_MS = 240_000


@contextmanager
def laboratory(folder: Path) -> Iterator[str]:
    """JupyterLab over ``folder`` on a free port; its address with `{}` in place of a notebook's name."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [f"--ServerApp.port={port}", "--no-browser", "--allow-root", "--IdentityProvider.token=lab"]
    places = {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "RUNTIME", "DATA")}
    places |= {"JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"), "JUPYTERLAB_WORKSPACES_DIR": str(folder / "spaces")}
    quiet = folder / "settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    quiet.parent.mkdir(parents=True)
    quiet.write_text('{"fetchNews": "false", "checkForUpdates": false}')
    environment = {**os.environ, **places, "IPYTHONDIR": str(folder / "ipython")}
    command = [sys.executable, "-m", "jupyter", "lab", *options, f"--ServerApp.root_dir={folder}"]
    with (folder / "lab.log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        for _ in range(1800):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api?token=lab").close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/lab/tree/{{}}?token=lab&reset"
    finally:
        process.terminate()
        process.wait()


def write(path: Path, *cells: str) -> None:
    """A notebook with ``cells`` of code."""
    row = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    rows = [{**row, "id": f"c{number}", "source": cell} for number, cell in enumerate(cells)]
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": rows}))


def run_all(page: Page, address: str) -> None:
    """Open a notebook and run all of its cells."""
    page.goto(address)
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()


def live(page: Page, lab: str, folder: Path, server: str) -> None:
    """A run that is started in a cell is drawn while it goes on; an attempt is chosen from the menu."""
    start = f'run = server.start("scripted", {SIZES!r}, wait=False)\nrun'
    connect = f'%load_ext agent0\nimport agent0\nserver = agent0.connect("{server}")'
    write(folder / "live.ipynb", connect, start, "%agent0 transcript run", "%agent0 curv run")
    run_all(page, lab.format("live.ipynb"))
    curve, transcript = page.locator(".agent0-curve"), page.locator(".agent0-transcript")
    expect(curve.locator(".agent0-head")).to_contain_text("running")
    expect(curve.locator("circle.point")).not_to_have_count(0)
    before = curve.locator("circle.point").count()
    expect(curve.locator(".agent0-head")).to_contain_text("finished")
    expect(curve.locator("circle.point")).to_have_count(SIZES["run.iterations"] + 1)
    assert before < SIZES["run.iterations"] + 1, "it was drawn before the run was over"
    expect(transcript.locator(".agent0-head")).to_contain_text("finished")
    first = transcript.locator("select option").last.get_attribute("value")
    shown = transcript.locator("pre").first.inner_text()
    transcript.locator("select").select_option(first)
    expect(transcript.locator("pre").first).not_to_have_text(shown)
    expect(page.locator(".jp-OutputArea-output", has_text="UsageError")).to_contain_text("There is no %agent0 curv run")
    assert page.locator(".jp-OutputArea-output", has_text="Traceback").count() == 0
    if "SHOT" in os.environ:
        page.locator(".jp-Notebook").evaluate("e => e.scrollTo(0, 0)")
        page.screenshot(path=os.environ["SHOT"])


def hostile(page: Page, lab: str, folder: Path, server: str) -> None:
    """What models wrote is text: no element comes of it, no script runs, nobody else is asked."""
    connect = f'%load_ext agent0\nimport agent0\nrun = agent0.connect("{server}").run("r1")'
    write(folder / "hostile.ipynb", connect, "run", "%agent0 transcript run")
    run_all(page, lab.format("hostile.ipynb"))
    transcript = page.locator(".agent0-transcript")
    expect(transcript.locator("pre").first).to_contain_text("<script>alert(1)</script>")
    expect(page.locator(".agent0-curve circle.point")).not_to_have_count(0)
    assert page.locator(".agent0 :is(script, img, a, iframe)").count() == 0


def main(browser: str) -> None:
    """Both notebooks in one JupyterLab."""
    story = [hostile_words(poisoned(event)) for event in whole_run(iterations=3)]
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        wrong, requested = list[str](), list[str]()
        expect.set_options(timeout=PATIENCE_MS)
        with laboratory(folder) as lab:
            for part, opened in ((live, served(folder / "data")), (hostile, viewed(stored(folder / "story", story)))):
                with opened as server:
                    page = chromium.new_page(viewport={"width": 1100, "height": 900})
                    page.set_default_timeout(PATIENCE_MS)
                    page.on("pageerror", lambda error: wrong.append(str(error)))
                    page.on("request", lambda request: requested.append(request.url))
                    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
                    part(page, lab, folder, server)
                    page.close()
        elsewhere = {
            url for url in requested if not url.startswith(("http://127.0.0.1:", "data:", "blob:", "ws://127.0.0.1:"))
        }
        assert not any("evil" in url for url in elsewhere), elsewhere
        assert wrong == [], wrong
        chromium.close()
    result: dict[str, Any] = {"live": "drawn while it ran", "hostile": "text alone", "elsewhere": sorted(elsewhere)}
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])
