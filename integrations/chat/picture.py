"""Draws messages of a bot as they were sent, in the order of a chat."""

import html
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from integrations import picture

STYLE = """body{margin:0;padding:14px 18px;background:#fff;color:#1d1c1d;font:15px/1.4 'DejaVu Sans',sans-serif}
h1{font-size:15px;margin:0 0 10px;padding-bottom:8px;border-bottom:1px solid #ddd}
section{display:flex;gap:10px;margin:9px 0}i{flex:none;width:30px;height:30px;border-radius:6px;background:#1264a3;
color:#fff;font:bold 15px/30px sans-serif;text-align:center}.person i{background:#8d5a97}pre{margin:0;font:inherit;
white-space:pre-wrap;overflow-wrap:anywhere}u{display:inline-block;text-decoration:none;border:1px solid #999;
border-radius:5px;padding:2px 12px;margin:6px 8px 0 0;font-weight:bold}.below{margin-left:26px}"""


@dataclass(frozen=True)
class ShownMessage:
    """A message of ``who``, its text and buttons as they came over the wire; ``below``: it stands in the thread."""

    who: str
    text: str
    buttons: tuple[str, ...] = ()
    below: bool = False


def draw(path: Path, title: str, messages: Iterable[ShownMessage]) -> None:
    """Write the picture of ``messages`` to ``path``, as ``picture.draw``."""
    picture.draw(path, STYLE, f"<h1>{html.escape(title)}</h1>" + "".join(map(_section, messages)))


def _section(message: ShownMessage) -> str:
    buttons = "".join(f"<u>{html.escape(label)}</u>" for label in message.buttons)
    kind = f"{'' if message.who == 'agent0' else 'person'} {'below' if message.below else ''}"
    text = f"<b>{html.escape(message.who)}</b><pre>{html.escape(message.text)}</pre>{buttons}"
    return f'<section class="{kind}"><i>{html.escape(message.who[:1].upper())}</i><div>{text}</div></section>'


def few_reviews(messages: Iterable[ShownMessage], most: int = 2) -> list[ShownMessage]:
    """``messages`` without questions for a verdict beyond ``most``: they are all alike."""
    kept: list[ShownMessage] = []
    for message in messages:
        if not message.buttons or sum(bool(each.buttons) for each in kept) < most:
            kept.append(message)
    return kept
