"""Which requests may be made at all: pure rules on addresses, hosts, methods and headers. A refusal says what to
change; it never says what a name resolved to."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import quote, urlsplit

import idna

LONGEST_URL, LONGEST_HEADER = 4096, 1000
HEADERS = (
    "accept",
    "accept-language",
    "cache-control",
    "content-type",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "range",
    "user-agent",
)
"""What a request may carry. Nothing that names another host, a proxy, a length or a person."""

_PORTS = {"http": 80, "https": 443}
_NEVER = ("CONNECT", "TRACE")
_method = re.compile(r"[A-Z]{1,16}")
_label = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_number = re.compile(r"[0-9]+|0x[0-9a-f]*")
_unfit = re.compile(r"[\x00-\x20\x7f\\\ud800-\udfff]")
_value = re.compile(r"[\t\x20-\x7e]*")

_REFUSED4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # behind a carrier's NAT; some clouds' metadata
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's metadata, in a public range
        "169.254.0.0/16",  # link-local, metadata of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_GLOBAL6 = IPv6Network("2000::/3")
_REFUSED6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # Teredo, which embeds an IPv4 address, and other assignments of the protocol's own
        "2001:db8::/32",
        "2002::/16",  # 6to4, which embeds an IPv4 address
        "3fff::/20",
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")


class EgressRefusedError(Exception):
    """A request that is not made. Its text is for whoever asked."""


@dataclass(frozen=True)
class Target:
    """Where a request goes. ``host`` is ASCII and lower case, an IPv6 address without brackets; ``path`` has the
    query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """What the Host header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The address as text."""
        return f"{self.scheme}://{self.authority}{self.path}"


def target(url: str) -> Target:
    """Read an address.

    Raises:
        RefusedError: it is none, or not one that is ever requested.
    """
    plain(url)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise EgressRefusedError(f"this is no web address: {error}"[:200]) from None
    if parts.scheme not in _PORTS:
        raise EgressRefusedError("only http:// and https:// addresses are requested")
    if "@" in parts.netloc:
        raise EgressRefusedError("an address with a user or a password is not requested")
    if port == 0:
        raise EgressRefusedError("there is no port 0")
    path = quote(f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}", safe="/?%:@!$&'()*+,;=~[]|")
    return Target(parts.scheme, hostname(parts.hostname or ""), port or _PORTS[parts.scheme], path)


def plain(url: str) -> None:
    """Raises RefusedError where ``url`` has characters that parsers disagree about."""
    if len(url) > LONGEST_URL:
        raise EgressRefusedError(f"an address is at most {LONGEST_URL} characters long")
    if _unfit.search(url):
        raise EgressRefusedError("an address has no spaces, backslashes or control characters")


def hostname(text: str) -> str:
    """A host in its one spelling: IDNA, lower case, no dot at its end; numbers only as a plain IP address.

    Raises:
        RefusedError: it is no host.
    """
    host = text.removesuffix(".").lower()
    if ":" in host:
        return _ipv6(host)
    if not host.isascii():
        try:
            host = idna.encode(host, uts46=True).decode().lower()
        except (idna.IDNAError, UnicodeError):
            raise EgressRefusedError("the host is not a name") from None
    labels = host.split(".")
    if len(host) > 253 or not all(_label.fullmatch(label) for label in labels):
        raise EgressRefusedError("the host is not a name")
    if _number.fullmatch(labels[-1]):
        return _ipv4(host)
    return host


def _ipv4(host: str) -> str:
    try:
        return str(IPv4Address(host))
    except ValueError:
        raise EgressRefusedError("an IP address is written as four plain decimal numbers") from None


def _ipv6(host: str) -> str:
    try:
        if "%" in host:
            raise ValueError("zone")
        return str(IPv6Address(host))
    except ValueError:
        raise EgressRefusedError("the host is not an IP address") from None


def check_host(target: Target, hosts: Sequence[str]) -> None:
    """Raises RefusedError unless ``hosts`` allows it: ``name``, ``*.suffix`` for all below it, either with ``:port``
    (without one only the scheme's own port)."""
    if not hosts:
        raise EgressRefusedError("no host is allowed; a person allows one with: agent0 sandbox allow host NAME")
    if not any(_matches(target, pattern) for pattern in hosts):
        raise EgressRefusedError(
            f"{target.authority} is not among the allowed hosts ({', '.join(hosts[:10])}); "
            f"a person allows it with: agent0 sandbox allow host {target.authority}"
        )


def _matches(target: Target, pattern: str) -> bool:
    name, port = _pattern(pattern)
    if port is None and target.port != _PORTS[target.scheme]:
        return False
    if port is not None and port != target.port:
        return False
    try:
        if name.startswith("*."):
            return target.host.endswith(f".{hostname(name[2:])}") and not _is_address(target.host)
        return target.host == hostname(name)
    except EgressRefusedError:
        return False


def _pattern(pattern: str) -> tuple[str, int | None]:
    """(host, port) of a line of the allowlist."""
    if pattern.startswith("["):
        host, _, rest = pattern[1:].partition("]")
        port = rest.removeprefix(":")
    elif pattern.count(":") == 1:
        host, _, port = pattern.partition(":")
    else:
        host, port = pattern, ""
    return host, int(port) if port.isascii() and port.isdigit() else None if not port else 0


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def method(name: str, allowed: Sequence[str]) -> str:
    """The method in upper case.

    Raises:
        RefusedError: it is not allowed, or never made.
    """
    upper = name.upper()
    if not _method.fullmatch(upper) or upper in _NEVER or upper not in allowed:
        raise EgressRefusedError(f"the method {upper[:16]!r} is not allowed; allowed: {', '.join(allowed) or 'none'}")
    return upper


def headers(fields: Mapping[str, str]) -> dict[str, str]:
    """Headers that may be sent, names in lower case.

    Raises:
        RefusedError: one may not.
    """
    out: dict[str, str] = {}
    for name, value in fields.items():
        key = name.lower()
        if key not in HEADERS:
            raise EgressRefusedError(f"the header {name[:40]!r} is not sent; allowed: {', '.join(HEADERS)}")
        if len(value) > LONGEST_HEADER or not _value.fullmatch(value):
            raise EgressRefusedError(f"the value of header {key} is too long or has characters that no header has")
        out[key] = value.strip()
    return out


def is_public(address: str) -> bool:
    """Whether ``address`` belongs to the open internet, and so to nobody whom this machine trusts."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv4Address):
        return not any(parsed in network for network in _REFUSED4)
    if parsed.scope_id is not None:
        return False
    if parsed in _NAT64:
        return is_public(str(IPv4Address(parsed.packed[12:])))
    return parsed in _GLOBAL6 and not any(parsed in network for network in _REFUSED6)
