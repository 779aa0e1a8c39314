"""Logs of Inspect in their own form, ``.eval``: a zip archive with a header and a file a sample, as the text of the one
JSON document that Inspect writes otherwise."""

import io
import json
import zipfile
import zlib

HEADERS = ("header.json", "_journal/start.json")
"""The whole log but its samples; the second of one that was never finished."""
MOST_FILES = 100_000


def eval_log(data: bytes, most: int) -> str:
    """Read an archive, whose files may have ``most`` bytes together; nothing of it is written to disk.

    Raises:
        ValueError: it is cut off, damaged, encrypted, packed in a way that cannot be read or larger unpacked, or is no
            log.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _log(archive, most)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"as an archive of Inspect it is damaged: {error}") from error


def _log(archive: zipfile.ZipFile, most: int) -> str:
    names = archive.namelist()
    if len(names) > MOST_FILES or len(set(names)) < len(names):
        raise ValueError(f"an archive of Inspect has each file once, and {MOST_FILES:,} at most")
    header_name = next((name for name in HEADERS if name in names), "")
    if not header_name:
        raise ValueError("an archive without header.json is no log of Inspect")
    header, left = _document(archive, header_name, most)
    texts = list[str]()
    for name in sorted(name for name in names if name.startswith("samples/") and name.endswith(".json")):
        sample, left = _document(archive, name, left)
        texts.append(sample)
    return f'{header[:-1]}, "samples": [{", ".join(texts)}]}}'


def _document(archive: zipfile.ZipFile, name: str, most: int) -> tuple[str, int]:
    """A file of the archive as the text of a JSON object, and how many bytes the others may still have: what its
    directory says of sizes is not believed."""
    with archive.open(name) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError("it is too large unpacked")
    try:
        document: object = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its file {name[:80]!r} is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise ValueError(f"its file {name[:80]!r} is no JSON object")
    if name in HEADERS:
        document = {"version": 2, "status": "started"} | {key: document[key] for key in document if key != "samples"}
    return json.dumps(document), most - len(content)
