"""Which requests are made at all: addresses, hosts, methods and headers, without a server."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.infra.web import egress_rules as rules
from agent0.infra.web.egress_rules import EgressRefusedError, target
from agent0.infra.web.fetch import Guard, Limits, fetch
from agent0.ports.web import WebRequest
from tests.web.open_worker import guard, resolve

LIMITS = Limits(5.0, 10_000, 3)

HIDDEN = [
    # what every address below has in common: nobody outside this machine or its network may be behind it
    "http://127.0.0.1/",
    "http://127.1.2.3/",
    "http://127.0.0.1:80/",
    "http://localhost/",
    "http://localhost./",
    "http://LOCALHOST/",
    "http://0.0.0.0/",
    "http://0.1.2.3/",
    "http://2130706433/",
    "http://017700000001/",
    "http://0x7f000001/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://0177.0.0.01/",
    "http://127.1/",
    "http://127.0.1/",
    "http://127.0.0.1./",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://100.100.100.200/latest/meta-data/",
    "http://169.254.169.254/latest/meta-data/",
    "http://168.63.129.16/machine",
    "http://192.0.0.192/opc/v2/",
    "http://192.0.2.1/",
    "http://198.18.0.1/",
    "http://198.51.100.7/",
    "http://203.0.113.9/",
    "http://224.0.0.1/",
    "http://239.255.255.250/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://[::1]/",
    "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:93.184.215.14]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b::10.0.0.1]/",
    "http://[64:ff9b:1::a00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2002:c0a8:101::1]/",
    "http://[2001:0:7f00:1::]/",
    "http://[2001:db8::1]/",
    "http://[3fff::1]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fec0::1]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[ff02::1]/",
    "http://[100::1]/",
    "http://\uff11\uff12\uff17.0.0.1/",
    "http://127\u30020\u30020\u30021/",
    "http://\u2460\u2461\u2466.0.0.1/",
    "http://\u24dbocalhost/",
    "http://x.127-0-0-2.test/",
    "http://x.169-254-169-254.test/",
    "http://x.v6-fd00-ec2--254.test/",
    "http://mixed.93-184-215-14.10-0-0-1.test/",
    "http://mixed.10-0-0-1.93-184-215-14.test/",
    "http://mixed.93-184-215-14.v6---1.test/",
]


def listed(url: str) -> tuple[str, ...]:
    """An allowlist that names the host however it is spelt, so that only its address can stop it."""
    host = url.split("/")[2].removesuffix(":80")
    return (host, host.strip("[]"), "127.0.0.1", "localhost")


@pytest.mark.parametrize("url", HIDDEN)
async def test_what_is_not_on_the_open_internet_is_refused_though_its_host_is_listed(url: str) -> None:
    """The product's own guard but for names that end in .test."""
    chosen = Guard(resolve if ".test" in url else Guard().resolve)
    answer = await fetch(WebRequest(url, hosts=listed(url)), LIMITS, chosen)
    assert answer.state == "refused", answer
    assert "not among" not in answer.reason, "the allowlist stopped it"


NEVER = [
    ("ftp://example.org/", "http://"),
    ("file:///etc/passwd", "http://"),
    ("gopher://example.org/", "http://"),
    ("//example.org/", "http://"),
    ("example.org", "http://"),
    ("", "http://"),
    ("javascript:alert(1)", "http://"),
    ("http://user@example.org/", "user"),
    ("http://user:pass@example.org/", "user"),
    ("http://example.org@127.0.0.1/", "user"),
    ("http://127.0.0.1#@example.org/", "not among"),
    ("http://127.0.0.1?@example.org/", "not among"),
    ("http://example.org\\@127.0.0.1/", "backslashes"),
    ("http://example.org /", "spaces"),
    ("http://exam\tple.org/", "spaces"),
    ("http://example.org/\r\nHost: evil.org", "spaces"),
    ("http://example.org/\x00", "spaces"),
    ("http://example.org:0/", "port 0"),
    ("http://example.org:99999/", "no web address"),
    ("http://example.org:x/", "no web address"),
    ("http://[::1/", "no web address"),
    ("http:///path", "not a name"),
    ("http://.example.org/", "not a name"),
    ("http://exa..mple.org/", "not a name"),
    ("http://-a-.example.org/", "not a name"),
    ("http://exa%6dple.org/", "not a name"),
    ("http://example.org%00.evil.org/", "not a name"),
    ("http://example.org:8080/", "not among"),
    ("https://example.org:80/", "not among"),
    ("http://evil.org/", "not among"),
    ("http://example.org.evil.org/", "not among"),
    ("http://evilexample.org/", "not among"),
    ("http://example.org/" + "a" * 5000, "characters long"),
    ("http://\ud800.org/", "control characters"),
]


@pytest.mark.parametrize(("url", "said"), NEVER)
async def test_what_is_no_allowed_address_is_refused_with_the_reason(url: str, said: str) -> None:
    async def nobody(host: str, port: int) -> list[str]:
        raise AssertionError(f"{host} was resolved")

    answer = await fetch(WebRequest(url, hosts=("example.org",)), LIMITS, Guard(nobody))
    assert (answer.state, said in answer.reason) == ("refused", True), answer


@pytest.mark.parametrize(
    ("url", "pattern", "fits"),
    [
        ("http://example.org/", "example.org", True),
        ("https://example.org/", "EXAMPLE.org.", True),
        ("https://example.org:443/", "example.org", True),
        ("http://a.example.org/", "example.org", False),
        ("http://a.example.org/", "*.example.org", True),
        ("http://a.b.example.org/", "*.example.org", True),
        ("http://example.org/", "*.example.org", False),
        ("http://evilexample.org/", "*.example.org", False),
        ("http://example.org:8080/", "example.org:8080", True),
        ("http://example.org/", "example.org:8080", False),
        ("http://a.example.org:8080/", "*.example.org:8080", True),
        ("http://example.org/", "example.org:http", False),
        ("http://example.org/", "*", False),
        ("http://example.org/", "*.org", True),
        ("http://bücher.example/", "bücher.example", True),
        ("http://xn--bcher-kva.example/", "bücher.example", True),
        ("http://BÜCHER.example/", "xn--bcher-kva.example", True),
        ("http://[2600::1]/", "2600::1", True),
        ("http://[2600::1]:8080/", "[2600:0::1]:8080", True),
        ("http://[2600::1]:8080/", "2600::1", False),
        ("http://1.2.3.4/", "*.3.4", False),
        ("http://example.org/", "", False),
    ],
)
def test_a_host_is_allowed_by_name_or_suffix(url: str, pattern: str, fits: bool) -> None:
    try:
        rules.check_host(target(url), (pattern,))
    except EgressRefusedError:
        assert not fits
    else:
        assert fits


@given(st.ip_addresses())
def test_no_public_address_is_one_that_the_standard_library_calls_private(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if rules.is_public(str(address)) and address not in ipaddress.ip_network("64:ff9b::/96"):
        assert address.is_global
        assert not (address.is_multicast or address.is_reserved or address.is_link_local or address.is_loopback)


@pytest.mark.parametrize("address", ["93.184.215.14", "1.1.1.1", "2606:4700::1111", "64:ff9b::1.1.1.1"])
def test_the_open_internet_is_public(address: str) -> None:
    assert rules.is_public(address)


@pytest.mark.parametrize("address", ["", "x", "1.1.1", "fe80::1%eth0", "2606:4700::1111%eth0", "127.0.0.1"])
def test_what_is_no_address_is_not_public(address: str) -> None:
    assert not rules.is_public(address)


async def test_a_name_that_resolves_to_nothing_has_no_answer() -> None:
    async def empty(host: str, port: int) -> list[str]:
        return []

    answer = await fetch(WebRequest("http://example.org/", hosts=("example.org",)), LIMITS, Guard(empty))
    assert (answer.state, answer.reason) == ("error", "there is no such host")


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"Host": "evil.org"}, "'Host' is not sent"),
        ({"Cookie": "a=b"}, "not sent"),
        ({"Authorization": "Bearer x"}, "not sent"),
        ({"Proxy-Authorization": "x"}, "not sent"),
        ({"X-Forwarded-For": "127.0.0.1"}, "not sent"),
        ({"Transfer-Encoding": "chunked"}, "not sent"),
        ({"Content-Length": "0"}, "not sent"),
        ({"Connection": "upgrade"}, "not sent"),
        ({"Accept-Encoding": "br"}, "not sent"),
        ({"Accept\r\nHost": "x"}, "not sent"),
        ({"Accept:": "x"}, "not sent"),
        ({"": "x"}, "not sent"),
        ({"Accept": "x\r\nHost: evil.org"}, "characters that no header has"),
        ({"Accept": "x\nX: y"}, "characters that no header has"),
        ({"Accept": "\0"}, "characters that no header has"),
        ({"Accept": "é"}, "characters that no header has"),
        ({"Accept": "x" * 1001}, "too long"),
    ],
)
async def test_headers_that_are_not_ours_to_send_are_refused(headers: dict[str, str], said: str) -> None:
    answer = await fetch(WebRequest("http://x.127-0-0-1.test/", headers=headers, hosts=("*.test",)), LIMITS, guard())
    assert (answer.state, said in answer.reason) == ("refused", True), answer


@pytest.mark.parametrize("method", ["POST", "CONNECT", "TRACE", "", "GET\r\nX: y", "get post", "\uff27ET"])
async def test_methods_that_are_not_allowed_are_refused(method: str) -> None:
    wanted = WebRequest("http://example.org/", method, hosts=("example.org",), methods=("GET", "CONNECT", "TRACE"))
    answer = await fetch(wanted, LIMITS, guard())
    assert (answer.state, "method" in answer.reason) == ("refused", True)
