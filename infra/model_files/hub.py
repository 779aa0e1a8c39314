"""A file in a repository of a hub, by huggingface_hub: its tokens, proxies, mirrors (HF_ENDPOINT) and resuming."""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent0.errors import AuthError, DependencyError, NotFoundError
from agent0.infra.model_files.offers import Offer, Report
from agent0.settings.catalogue import HubSource

if TYPE_CHECKING:
    from huggingface_hub.file_download import HfFileMetadata

DIGITS = 64


def offer(source: HubSource) -> Offer:
    """Offer the file with the size and, where it is stored by digest, the sha256 that the hub states.

    Raises:
        AuthError: the repository is gated, and no token opens it.
        NotFoundError: the hub has no such file.
        DependencyError: the hub does not answer, or its package is not installed.
    """
    metadata: HfFileMetadata = _call(source, "get_hf_file_metadata", url=_url(source), endpoint=_endpoint())
    etag = metadata.etag or ""
    digest = etag if len(etag) == DIGITS and not set(etag) - set("0123456789abcdef") else ""
    origin = f"{source.repository} on {_endpoint() or 'huggingface.co'}"
    return Offer(origin, metadata.size or 0, digest, partial(_write, source))


def _write(source: HubSource, out: Path, report: Report) -> None:
    """Fetch it into the folder of ``out``; huggingface_hub shows how far it is."""
    path = _call(
        source,
        "hf_hub_download",
        repo_id=source.repository,
        filename=source.file,
        revision=source.revision,
        local_dir=out.parent,
        endpoint=_endpoint(),
    )
    Path(path).replace(out)
    report(out.stat().st_size)


def _url(source: HubSource) -> str:
    hub = _library()
    return str(hub.hf_hub_url(source.repository, source.file, revision=source.revision, endpoint=_endpoint()))


def _endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT") or None


def _library() -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise DependencyError("The package of the hub", f"{error}.", "make setup") from error
    return huggingface_hub


def _call(source: HubSource, function: str, **options: Any) -> Any:
    """What a function of huggingface_hub answers; its errors as ours."""
    errors = _library().errors
    try:
        return getattr(_library(), function)(**options)
    except errors.GatedRepoError as error:
        fix = f"Agree at https://huggingface.co/{source.repository}, then: hf auth login, or set HF_TOKEN."
        raise AuthError(f"{source.repository} is gated.", "No token opens it.", fix) from error
    except (errors.EntryNotFoundError, errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        if isinstance(error, errors.LocalEntryNotFoundError):
            raise _away(error) from error
        what, why = f"The hub has no {source.file} in {source.repository}.", f"{type(error).__name__}."
        raise NotFoundError(what, why, "Name another --from.") from error
    except Exception as error:  # of whichever client it uses: httpx, xet
        raise _away(error) from error


def _away(error: Exception) -> DependencyError:
    message = next(iter(str(error).strip().splitlines()), "")[:200]
    return DependencyError("The hub", f"{type(error).__name__}: {message}", "Check the network, HF_ENDPOINT or proxy.")
