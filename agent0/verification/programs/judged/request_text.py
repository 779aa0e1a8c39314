"""Requests to the two processes, as text within the code of a call."""

import base64
import json
import zlib
from collections.abc import Mapping
from typing import TypedDict


class SharedRequest(TypedDict):
    """For both processes: names that tests use of the program, those of them that are classes, and the classes of the
    prompt's code, which both have."""

    names: list[str]
    own: list[str]
    shared: list[str]


class JudgeRequest(SharedRequest):
    """For the tests' process: the prompt's code, the tests, what ``check`` is given (empty: nothing), the modules by
    which tests import the program, and seconds for all of it."""

    setup: str
    test: str
    entry: str
    modules: list[str]
    wall_s: float


class CandidateRequest(SharedRequest):
    """For the candidate's process: the source of its program as well."""

    source: str


def pack(request: Mapping[str, object]) -> str:
    """Write ``request`` as short text of letters, digits and ``+/=``."""
    return base64.b64encode(zlib.compress(json.dumps(request).encode())).decode()


def unpack(text: str) -> SharedRequest:
    """Read the request that ``pack`` wrote as ``text``."""
    request: SharedRequest = json.loads(zlib.decompress(base64.b64decode(text)))
    return request
