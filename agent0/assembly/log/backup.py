"""Part of the rim: a live log leaves as a backup, an archive that holds the settings, too, and comes back elsewhere."""

import json
from pathlib import Path

from agent0.assembly.log.access import open_log
from agent0.assembly.log.export import ExportRequest, describe_archive, write
from agent0.assembly.log.integrity import seal_file
from agent0.assembly.log.restore import bring, require_whole
from agent0.assembly.runtime.read_models import catch_up
from agent0.config.loading import public
from agent0.config.setting_entries import is_secret, leaves
from agent0.infra.integrity.archive import manifest_of
from agent0.infra.integrity.archive_place import open_archive
from agent0.infra.storage.files import whole_file
from agent0.settings import Settings

RESTORED = "restored.toml"
"""Profile with the settings of a backup, in the data folder that it came into."""
_OF_THE_HOST = frozenset({"nats.url", "nats.user", "nats.credentials", "nats.tls_ca", "home", "profile"})


async def back_up(settings: Settings, path: Path) -> dict[str, object]:
    """Write the log up to its last event, its artifacts and the settings without keys to ``path``: a folder, or one
    file where it ends in ``.tar``. Runs go on meanwhile; what is written is read back.

    Raises:
        LogError: the log is damaged. ConfigError: the path is taken. DamagedError: not all came to the disk.
    """
    async with open_log(settings, "reader") as log:
        manifest, _ = await write(settings, log, path, ExportRequest(settings=_toml(settings)))
    require_whole(open_archive(path), manifest)
    earlier = [archive.path for archive in seal_file(settings).read().archives]
    return {**describe_archive(path, manifest), "earlier_archives": earlier}


async def restore_backup(settings: Settings, path: Path) -> dict[str, object]:
    """Make a log from the backup at ``path``, in an empty data folder or on the servers of ``nats.url``, and its
    tables; the settings come as a profile, ``restored.toml`` of the data folder.

    Raises:
        DamagedError: the backup is not what it was. OperationError: there is another log.
    """
    facts = await bring(settings, path)
    if text := manifest_of(open_archive(path)).settings:
        with whole_file(settings.home / RESTORED) as fresh:
            fresh.write_text(text, encoding="utf-8")
    async with open_log(settings, "reader") as log:
        reached = await catch_up(settings, log)
    return {**facts, "tables_at": reached, "profile": str(settings.home / RESTORED) if text else ""}


def _toml(settings: Settings) -> str:
    """Settings that are not as by default, a line each; whatever is secret, or of this host alone, is left out."""
    usual = dict(leaves(public(Settings())))
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}\n"
        for key, value in sorted(leaves(public(settings)))
        if value not in (None, usual.get(key)) and _is_plain(value) and key not in _OF_THE_HOST and not is_secret(key)
    ]
    return "".join(lines)


def _is_plain(value: object) -> bool:
    """Whether it is written alike in JSON and TOML: no mapping, as of a tool server's environment, which has keys."""
    return not isinstance(value, dict) and not (isinstance(value, list) and any(isinstance(v, dict) for v in value))
