"""One request against servers of the real wire format that do what they should not."""

import asyncio
import datetime
import gzip
import ssl
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agent0.infra.web.fetch import Limits, fetch
from agent0.ports.web import WebRequest, WebResponse
from tests.web.open_worker import guard
from tests.web.servers import Asked, Say, Served, raw, reply, serving

LIMITS = Limits(5.0, 10_000, 3)
HOST = "x.127-0-0-1.test"


async def get(served: Served, path: str = "/", limits: Limits = LIMITS, **given: object) -> WebResponse:
    """GET from the local server under a name that resolves to it."""
    port = served.port
    given.setdefault("hosts", (f"*.test:{port}",))
    return await fetch(WebRequest(f"http://{HOST}:{port}{path}", **given), limits, guard())  # type: ignore[arg-type]


async def test_a_request_is_made_as_it_was_wanted() -> None:
    async with serving(reply(b"caf\xc3\xa9", ETag='"1"', Set_Cookie="a=b")) as served:
        given = {"Accept": "text/plain", "User-Agent": "me", "content-type": "application/json"}
        answer = await get(
            served, "/a?b=c d".replace(" ", "%20"), headers=given, method="post", methods=("POST",), body=b"{}"
        )
    assert (answer.state, answer.status, answer.body.decode()) == ("ok", 200, "café")
    assert answer.headers == {"content-type": "text/plain", "etag": '"1"'}
    (asked,) = served.asked
    assert (asked.line, asked.body) == ("POST /a?b=c%20d HTTP/1.1", b"{}")
    assert asked.headers == {
        "host": f"{HOST}:{served.port}",
        "user-agent": "me",
        "accept": "text/plain",
        "accept-encoding": "gzip, deflate",
        "content-type": "application/json",
        "connection": "close",
        "content-length": "2",
    }


async def test_nothing_is_kept_from_one_request_to_the_next() -> None:
    async with serving(reply(Set_Cookie="a=b; Path=/")) as served:
        await get(served)
        await get(served)
    assert ["cookie" in asked.headers for asked in served.asked] == [False, False]
    assert served.connections == 2


async def test_proxies_and_passwords_of_the_environment_are_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text(f"machine {HOST} login me password secret\n")
    async with serving(reply(b"proxied")) as proxy, serving(reply(b"direct")) as served:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("HOME", str(tmp_path))
        answer = await get(served)
    assert (answer.body, proxy.connections, "authorization" in served.asked[0].headers) == (b"direct", 0, False)


@pytest.mark.parametrize("status", ["301", "302", "303", "307", "308"])
@pytest.mark.parametrize(
    "place",
    [
        "http://127.0.0.1:{port}/",
        "//127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://2130706433:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://x.127-0-0-2.test:{port}/",
        "http://x.10-0-0-1.test:{port}/",
        "http://x.127-0-0-1.10-0-0-1.test:{port}/",
        "http://x.127-0-0-1.test/",
        "http://other.example:{port}/",
        "http://me@x.127-0-0-1.test:{port}/",
        "file:///etc/passwd",
        "http://x.127-0-0-1.test:{port}/ a",
        "\\\\127.0.0.1:{port}/",
    ],
)
async def test_a_redirect_is_checked_like_any_request(place: str, status: str) -> None:
    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("sockname")[1]
        await reply(b"", f"{status} Go", Location=place.format(port=port))(asked, writer)

    async with serving(say) as served:
        answer = await get(served)
    assert (answer.state, served.connections) == ("refused", 1), answer


async def test_redirects_within_the_rules_are_followed_as_browsers_do() -> None:
    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        places = {"/": ("303 See Other", "a/b?c"), "/a/b?c": ("307 Go", "/end"), "/end": ("200 OK", "")}
        status, place = places[asked.path]
        await reply(asked.path.encode(), status, **({"Location": place} if place else {}))(asked, writer)

    given = {"method": "POST", "methods": ("GET", "POST"), "body": b"x", "headers": {"Content-Type": "text/plain"}}
    async with serving(say) as served:
        answer = await get(served, **given)
    assert (answer.state, answer.body, answer.url) == ("ok", b"/end", f"http://{HOST}:{served.port}/end")
    assert [(asked.line.split()[0], asked.body) for asked in served.asked] == [
        ("POST", b"x"),
        ("GET", b""),
        ("GET", b""),
    ]
    assert ["content-type" in asked.headers for asked in served.asked] == [True, False, False]


async def test_a_redirect_cannot_change_the_method_to_one_that_is_not_allowed() -> None:
    async with serving(reply(b"", "303 Go", Location="/x")) as served:
        answer = await get(served, method="POST", methods=("POST",))
    assert (answer.state, served.connections) == ("refused", 1)


async def test_redirects_end() -> None:
    async with serving(reply(b"", "302 Go", Location="/again")) as served:
        answer = await get(served)
    assert (answer.state, answer.reason, served.connections) == ("refused", "more than 3 redirects", 4)


async def test_a_name_that_changes_its_mind_is_asked_once_a_hop() -> None:
    """Where checking and connecting resolved a name each, the second answer would be the one connected to."""
    async with serving(reply(b"", "302 Go", Location="/again")) as served:
        port = served.port
        url = f"http://rebind-1.127-0-0-1.10-0-0-1.test:{port}/"
        answer = await fetch(WebRequest(url, hosts=(f"*.test:{port}",)), LIMITS, guard())
    assert (answer.state, served.connections) == ("refused", 1), "the hop after it asks again, and checks again"


async def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    async with serving(reply()) as served:
        url = f"http://x.127-0-0-1.127-0-0-1.test:{served.port}/"
        answer = await fetch(WebRequest(url, hosts=(f"*.test:{served.port}",)), LIMITS, guard())
    assert (answer.state, served.connections) == ("ok", 1)
    dead = WebRequest(f"http://x.127-0-0-1.test:{served.port}/", hosts=(f"*.test:{served.port}",))
    assert (await fetch(dead, LIMITS, guard())).reason == "no connection, or no valid certificate"


def chunked(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n0\r\n\r\n"


BOMB = gzip.compress(bytes(50_000_000))
LONG = {
    "length": reply(bytes(10_001)),
    "chunked": raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(bytes(20_000))),
    "until closed": raw(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(20_000)),
    "gzip bomb": reply(BOMB, Content_Encoding="gzip"),
    "deflate bomb": reply(zlib.compress(bytes(50_000_000)), Content_Encoding="deflate"),
}


@pytest.mark.parametrize("say", LONG.values(), ids=LONG)
async def test_an_answer_is_read_up_to_the_limit(say: Say) -> None:
    async with serving(say) as served:
        answer = await get(served)
    assert (answer.state, answer.status, len(answer.body)) == ("output_flood", 200, 10_000)
    assert "10000 bytes" in answer.reason


async def test_an_answer_of_exactly_the_limit_is_whole() -> None:
    for say in (reply(bytes(10_000)), reply(gzip.compress(bytes(10_000)), Content_Encoding="gzip")):
        async with serving(say) as served:
            answer = await get(served)
        assert (answer.state, len(answer.body)) == ("ok", 10_000)


async def test_a_body_that_is_too_long_is_not_sent() -> None:
    async with serving(reply()) as served:
        answer = await get(served, method="POST", methods=("POST",), body=bytes(10_001))
    assert (answer.state, served.connections) == ("refused", 0)


async def endless(_: Asked, writer: asyncio.StreamWriter) -> None:
    """A byte now and then: no pause is long, the whole is."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n")
    while not writer.is_closing():
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.02)


async def hushed(_: Asked, writer: asyncio.StreamWriter) -> None:
    """Never says anything."""
    await asyncio.Event().wait()


async def greeting(_: Asked, writer: asyncio.StreamWriter) -> None:
    """Interim answers without an end."""
    while not writer.is_closing():
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("say", [endless, hushed, greeting])
async def test_a_server_that_takes_its_time_is_left(say: Say) -> None:
    async with serving(say) as served:
        answer = await get(served, limits=Limits(0.5, 10_000, 3))
    assert (answer.state, answer.reason) == ("timeout", "there was no whole answer within 0.5 s")


NONSENSE = {
    "no http": raw(b"hello\r\n\r\n"),
    "nothing": raw(b""),
    "half a head": raw(b"HTTP/1.1 200 OK\r\nContent-"),
    "half a body": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"),
    "huge head": raw(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000 + b"\r\n\r\n"),
    "bad gzip": reply(b"this is no gzip", Content_Encoding="gzip"),
    "gzip in gzip": reply(gzip.compress(gzip.compress(b"x")), Content_Encoding="gzip, gzip"),
    "brotli": reply(b"x", Content_Encoding="br"),
    "bad chunk": raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n"),
    "two lengths": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"),
}


@pytest.mark.parametrize("say", NONSENSE.values(), ids=NONSENSE)
async def test_a_server_that_talks_nonsense_is_an_error(say: Say) -> None:
    async with serving(say) as served:
        answer = await get(served)
    assert (answer.state, bool(answer.reason)) == ("error", True), answer


@pytest.mark.parametrize("status", ["204 No Content", "404 Not Found", "500 Oh"])
async def test_any_status_is_an_answer(status: str) -> None:
    async with serving(reply(b"" if status[0] == "2" else b"so", status)) as served:
        answer = await get(served)
    assert (answer.state, answer.status) == ("ok", int(status[:3]))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(certificate, key) of ``*.127-0-0-1.test`` that signs itself."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("*.127-0-0-1.test")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(key.private_bytes(pem, *plain))
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
async def secure(certificates: tuple[Path, Path]) -> AsyncIterator[Served]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificates)
    async with serving(reply(b"safe"), context) as served:
        yield served


async def test_server_name_and_certificate_are_those_of_the_name(
    secure: Served, certificates: tuple[Path, Path]
) -> None:
    url, hosts = f"https://{HOST}:{secure.port}/", (f"*.test:{secure.port}",)
    answer = await fetch(WebRequest(url, hosts=hosts), LIMITS, guard(str(certificates[0])))
    assert (answer.state, answer.body, secure.names) == ("ok", b"safe", [HOST])
    assert secure.asked[0].headers["host"] == f"{HOST}:{secure.port}"


@pytest.mark.parametrize("known", [True, False])
async def test_a_certificate_of_somebody_else_is_no_connection(
    secure: Served, certificates: tuple[Path, Path], known: bool
) -> None:
    host = "wrong.also.127-0-0-1.test" if known else HOST
    wanted = WebRequest(f"https://{host}:{secure.port}/", hosts=(f"*.test:{secure.port}",))
    answer = await fetch(wanted, LIMITS, guard(str(certificates[0]) if known else ""))
    assert (answer.state, answer.reason) == ("error", "no connection, or no valid certificate")
    assert secure.asked == []


async def test_a_redirect_does_not_leave_encryption(certificates: tuple[Path, Path]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificates)
    async with serving(reply(b"plain")) as plain:
        place = f"http://{HOST}:{plain.port}/"
        async with serving(reply(b"", "302 Go", Location=place), context) as served:
            url, hosts = f"https://{HOST}:{served.port}/", (f"*.test:{served.port}", f"*.test:{plain.port}")
            answer = await fetch(WebRequest(url, hosts=hosts), LIMITS, guard(str(certificates[0])))
    assert (answer.state, plain.connections) == ("refused", 0)
