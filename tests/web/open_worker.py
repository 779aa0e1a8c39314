"""The proxy process for tests: 127.0.0.1 counts as the open internet, and names say themselves what they resolve to.

``x.93-184-215-14.test`` has one address, ``x.1-1-1-1.127-0-0-1.test`` two; ``rebind-7.1-1-1-1.10-0-0-1.test`` has the
first when it is asked first, and the second ever after. IPv6 is written ``v6-fd00--1``.
"""

import ssl
import sys
from functools import cache

from agent0.infra.web.fetch import Guard, is_strange
from agent0.infra.web.proxy_process import main

_asked: dict[str, int] = {}


async def resolve(host: str, port: int) -> list[str]:
    """What ``host`` says."""
    labels = [label for label in host.removesuffix(".test").split(".") if label[:1].isdigit() or label[:3] == "v6-"]
    found = [_address(label) for label in labels]
    if host.startswith("rebind"):
        _asked[host] = _asked.get(host, 0) + 1
        return found[:1] if _asked[host] == 1 else found[1:]
    return found or [host]


def _address(label: str) -> str:
    return label[3:].replace("-", ":") if label.startswith("v6-") else label.replace("-", ".")


def is_allowed(address: str) -> bool:
    """The internet of tests."""
    return address == "127.0.0.1" or is_strange(address)


@cache
def guard(authority: str = "") -> Guard:
    """``authority``: file with the only certificate authority there is."""
    tls = ssl.create_default_context(cafile=authority) if authority else ssl.create_default_context()
    return Guard(resolve, is_allowed, tls)


if __name__ == "__main__":
    main(guard(*sys.argv[1:]))
