"""Pictures of what was really printed or sent: a page of it, and a headless Chromium that takes its picture.

``COMMANDS | python -m integrations.picture FILE`` draws standard input as a terminal shows it.
"""

import html
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageChops

HEIGHT = 4000
TERMINAL = """body{margin:0;padding:14px 18px;background:#fff;color:#1d1c1d}
pre{margin:0;font:14px/1.45 'DejaVu Sans Mono',monospace;white-space:pre-wrap;overflow-wrap:anywhere}b{color:#1264a3}"""


def draw(path: Path, style: str, body: str, width: int = 760) -> None:
    """Write the picture of a white page with ``body``, as high as it is, to ``path``, in the form that its name says.

    Raises:
        SystemExit: there is no Chromium.
    """
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("there is no Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder, "page.html"), Path(folder, "shot.png")
        page.write_text(f"<!doctype html><meta charset=utf-8><style>{style}</style>{body}", encoding="utf-8")
        options = ("--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{HEIGHT}")
        command = [browser, *options, f"--user-data-dir={folder}/profile", f"--screenshot={shot}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True)
        with Image.open(shot) as whole:
            picture = whole.convert("RGB")
    drawn = ImageChops.difference(picture, Image.new("RGB", picture.size, "white")).getbbox()
    picture.crop((0, 0, width, drawn[3] + 14 if drawn else HEIGHT)).save(path, quality=80)


def main() -> None:
    """Draw standard input; lines behind a prompt are commands."""
    lines = [html.escape(line) for line in sys.stdin.read().splitlines()]
    shown = (f"<b>{line}</b>" if line.startswith("$ ") else line for line in lines)
    draw(Path(sys.argv[1]), TERMINAL, "<pre>" + "\n".join(shown) + "</pre>", 900)


if __name__ == "__main__":
    main()
