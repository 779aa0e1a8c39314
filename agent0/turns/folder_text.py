"""What a student reads of its work folder with the question."""

from collections.abc import Mapping
from typing import Protocol

SHOWN = "Your work folder has these files:"
NAMED = "Your work folder has these files, too long to be shown here:"


class SizedFolder(Protocol):
    """A work folder whose files need not be read to know their sizes."""

    def sizes(self) -> Mapping[str, int]:
        """Bytes by name."""

    def __getitem__(self, name: str) -> bytes: ...


def folder_text(folder: SizedFolder, limit: int) -> str:
    """Every file of ``folder`` where they have ``limit`` bytes at most, else their names, as many as fit; "" where the
    folder is empty or ``limit`` is 0."""
    if not limit or not (sizes := folder.sizes()):
        return ""
    if sum(sizes.values()) > limit:
        return f"{NAMED}\n{_names(sorted(sizes), limit)}"
    return "\n\n".join([SHOWN, *(f"==> {name} <==\n{_text(folder[name])}" for name in sorted(sizes))])


def _names(names: list[str], limit: int) -> str:
    shown = list[str]()
    for name in names:
        limit -= len(name) + 1
        if limit < 0:
            return "\n".join([*shown, f"and {len(names) - len(shown)} more"])
        shown.append(name)
    return "\n".join(shown)


def _text(data: bytes) -> str:
    try:
        return data.decode().rstrip("\n")
    except UnicodeDecodeError:
        return f"[{len(data)} bytes that are no text]"
