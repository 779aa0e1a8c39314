"""Logs of Inspect in their own form, ``.eval``: a zip archive with a header and a file a sample, as the text of the one
JSON document that Inspect writes otherwise."""

import io
import json
import zipfile
import zlib

from agent0.infra.storage.row_formats import unzstd

HEADERS = ("header.json", "_journal/start.json")
"""The whole log but its samples; the second of one that was never finished."""
MOST_FILES = 100_000
ZSTD = 93
"""How Inspect packs its files, which zip archives of Python before 3.14 do not."""


def eval_log(data: bytes, most: int) -> str:
    """Read an archive, whose files may have ``most`` bytes together; nothing of it is written to disk.

    Raises:
        ImportError: it is packed by zstd, whose reader is not installed.
        ValueError: it is cut off, damaged, encrypted, packed otherwise or larger unpacked, or is no log.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _log(archive, data, most)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"as an archive of Inspect it is damaged: {error}") from error


def _log(archive: zipfile.ZipFile, data: bytes, most: int) -> str:
    names = archive.namelist()
    if len(names) > MOST_FILES or len(set(names)) < len(names):
        raise ValueError(f"an archive of Inspect has each file once, and {MOST_FILES:,} at most")
    header_name = next((name for name in HEADERS if name in names), "")
    if not header_name:
        raise ValueError("an archive without header.json is no log of Inspect")
    header, left = _document(archive, data, header_name, most)
    texts = list[str]()
    for name in names:
        if name.startswith("samples/") and name.endswith(".json"):
            sample, left = _document(archive, data, name, left)
            texts.append(sample)
    return f'{header[:-1]}, "samples": [{", ".join(texts)}]}}'


def _document(archive: zipfile.ZipFile, data: bytes, name: str, most: int) -> tuple[str, int]:
    """A file of the archive as the text of a JSON object, and how many bytes the others may still have: what its
    directory says of sizes is not believed."""
    content = _content(archive, data, name, most + 1)
    if len(content) > most:
        raise ValueError("as an archive of Inspect it is too large unpacked")
    try:
        document: object = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its file {name[:80]!r} is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise ValueError(f"its file {name[:80]!r} is no JSON object")
    if name in HEADERS:
        document = {"version": 2, "status": "started"} | {key: document[key] for key in document if key != "samples"}
    return json.dumps(document), most - len(content)


def _content(archive: zipfile.ZipFile, data: bytes, name: str, most: int) -> bytes:
    """At most ``most`` bytes of a file of the archive."""
    entry = archive.getinfo(name)
    if entry.compress_type != ZSTD:
        with archive.open(entry) as file:
            return file.read(most)
    at = entry.header_offset
    names = int.from_bytes(data[at + 26 : at + 28], "little") + int.from_bytes(data[at + 28 : at + 30], "little")
    begin = at + 30 + names
    content = unzstd(data[begin : begin + entry.compress_size], most)
    if len(content) < most and zlib.crc32(content) != entry.CRC:
        raise zipfile.BadZipFile(f"Bad CRC-32 for file {name!r}")
    return content
