"""The one real sandbox of the tests of tools."""

from tests.sandbox.conftest import sandbox

__all__ = ["sandbox"]
