"""A flipped bit of a seal, in its keys as in its values, and of what is noted outside the log: each has a report."""

import asyncio
import itertools
from pathlib import Path

from agent0.assembly.log.access import open_log
from agent0.config.loading import load
from agent0.errors import LogError
from agent0.events.alarms import LOG, LogSealed
from agent0.infra.integrity.seal_journal import Archived, SealFile, Stream
from agent0.provenance.hash_chain import Seal, seal_of
from tests.terminal import agent0 as call
from tests.test_seals import alarm, differences, sealed_log, told


def test_any_flipped_bit_of_a_seal_is_found_keys_included() -> None:
    log = sealed_log([1, 1])
    seq, body = log[1]
    assert seal_of(seq, body)
    for place, bit in itertools.product(range(len(body)), range(8)):
        flipped = bytearray(body)
        flipped[place] ^= 1 << bit
        found = differences([(s, bytes(flipped) if s == seq else b) for s, b in log])
        assert any(one.first <= seq <= one.last for one in found), bytes(flipped)


def test_any_flipped_bit_of_what_is_noted_is_refused_or_another_fact(tmp_path: Path) -> None:
    file = SealFile(tmp_path)
    file.note(
        Stream("now", 1, "", (2, 3, 5, 5)),
        Seal(6, 1, 5, "a" * 64),
        Archived(1, 6, "b" * 64, "/x", "c" * 64, 9, ("r1",)),
    )
    whole, facts = file.path.read_bytes(), file.read()
    for place, bit in itertools.product(range(len(whole) - 1), range(8)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << bit
        file.path.write_bytes(flipped)
        try:
            held = file.read()
        except LogError as error:
            assert "is damaged" in str(error)
            continue
        assert held != facts
        assert [held.stream.admits(seq) for seq in range(9)] if held.stream else True
        assert all(isinstance(n, int) for seal in held.seals for n in (seal.seq, seal.first, seal.last))


def test_a_seal_whose_key_is_damaged_is_reported_by_the_command(tmp_path: Path) -> None:
    """As stored by a program that damaged it in memory: the server's own checksum holds."""
    held = load("scripted", {"home": str(tmp_path / "home")}, {})

    async def store() -> None:
        async with open_log(held, make=True) as log:
            for seq, body in sealed_log([1, 1]):
                subject = (
                    told(LogSealed(first=1, last=1, sha256=""), LOG).subject if seq % 2 == 0 else alarm("a").subject
                )
                damaged = body.replace(b'"data":', b'"eata":') if seq == 2 else body
                await log.client.jetstream().publish(subject, damaged)
            log.wrote = False

    asyncio.run(store())
    said = call("events", "verify", "--json", home=held.home)
    assert (said.code, said.json["state"]) == (1, "broken"), said.err
    found = [(difference["first"], difference["last"]) for difference in said.json["differences"]]
    assert found == [(1, 1), (2, 3), (2, 2)], said.json  # two segments, and the message itself
    assert "the seal over them is gone" in said.json["differences"][0]["message"]
