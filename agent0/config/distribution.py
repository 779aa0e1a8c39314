"""The name of this package in the package index, where ``agent0`` is somebody else's, and its installed version."""

from importlib.metadata import version

DISTRIBUTION = "agent0-train"


def installed_version() -> str:
    """The installed version of Agent0, such as ``0.1.0``.

    Raises:
        importlib.metadata.PackageNotFoundError: it runs from files that nobody installed.
    """
    return version(DISTRIBUTION)
