"""Shorter prompts: what tools printed is shortened and nothing else, what was sent once stays as it was, and nothing is
compressed whose loss of accuracy was not measured."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.assembly.routing.billing import check_compression
from agent0.errors import ConfigError
from agent0.events.values import Turn
from agent0.infra.gateway.cache import AnswerCache
from agent0.infra.gateway.compression import Shortening, bm25
from agent0.infra.gateway.gateway import Gateway, RemoteLink
from agent0.infra.log.event_log import Log
from agent0.ports.models import GenerateRequest
from agent0.routing.compression import Compression, ends, without_blanks
from agent0.settings.router import CompressionSettings
from tests.terminal import agent0
from tests.test_gateway import ASKED, Vendor, books, called, link

STRUCTURAL, EXTRACTIVE = Compression(120), Compression(120, bm25)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OUTPUT = (
    st.text(max_size=400) | JSON.map(lambda held: json.dumps(held, indent=4)) | st.sampled_from(["x\n" * 200, "y" * 90])
)
TURN = st.builds(Turn, role=st.sampled_from(["user", "assistant", "tool", "system"]), content=OUTPUT)


def tool(text: str) -> Turn:
    return Turn(role="tool", name="python", content=text)


@pytest.mark.parametrize("compress", [STRUCTURAL, EXTRACTIVE])
@settings(max_examples=40)
@given(turns=st.lists(TURN, max_size=6))
def test_what_was_sent_once_stays_and_only_outputs_get_shorter(compress: Compression, turns: list[Turn]) -> None:
    whole = compress(turns)
    for count in range(len(turns)):
        assert compress(turns[:count]) == whole[:count]
    for old, new in zip(turns, whole, strict=True):
        assert (new.role, new.name) == (old.role, old.name) and len(new.content) <= len(old.content)
        assert old.role == "tool" or new == old


@settings(max_examples=40)
@given(held=JSON, indent=st.integers(0, 4))
def test_json_loses_blanks_and_nothing_else(held: Any, indent: int) -> None:
    text = json.dumps(held if isinstance(held, dict) else [held], indent=indent)
    small = without_blanks(text)
    assert json.loads(small) == json.loads(text) and len(small) <= len(text)
    assert without_blanks("[1,  2") == "[1,  2" and without_blanks("a  b \n c") == "a  b\n c"


def test_an_output_that_was_there_before_is_named() -> None:
    turns = [tool("a" * 100), tool("b" * 100), tool("a" * 100), tool("short"), tool("short")]
    said = [one.content for one in STRUCTURAL(turns)]
    assert said[2] == "[the same as output 1 above]" and said[3:] == ["short", "short"]


def test_a_long_output_keeps_its_ends_or_the_lines_that_were_asked_for() -> None:
    lines = [f"row {n}: nothing of interest here" for n in range(40)]
    lines[17] = "row 17: the price of copper is 42"
    turns = [Turn(role="user", content="What is the price of copper?"), tool("\n".join(lines))]
    cut, chosen = (compress(turns)[1].content for compress in (STRUCTURAL, EXTRACTIVE))
    assert "copper" not in cut and "characters left out" in cut
    assert cut.startswith("row 0:") and cut.endswith(lines[-1][-20:])
    assert lines[17] in chosen.split("\n") and chosen.startswith("row 0:") and chosen.endswith(lines[-1])
    assert "lines left out]" in chosen
    assert EXTRACTIVE([turns[0], tool("z" * 300)])[1].content == ends("z" * 300, 120)  # lines do not help


def test_rare_words_rank_higher_and_nothing_asked_ranks_nothing() -> None:
    texts = ["the the the", "the copper", 'the "quoted" AND (odd) words*', ""]
    found = bm25(texts, 'the copper "AND"')
    assert found[1] > found[0] > 0 == found[3]
    assert bm25(texts, "") == bm25(texts, "?!") == [0.0] * 4


# --- the gate ---------------------------------------------------------------------------------------------------------


def test_nothing_is_compressed_whose_loss_was_not_measured_or_is_too_large() -> None:
    check_compression(CompressionSettings())
    on: dict[str, Any] = {"stages": ("structural",)}
    with pytest.raises(ConfigError, match=r"was not measured.*router compress"):
        check_compression(CompressionSettings(**on))
    with pytest.raises(ConfigError, match=r"lose 3\.0 points"):
        check_compression(CompressionSettings(**on, loss95=0.03))
    check_compression(CompressionSettings(**on, loss95=0.02))


async def test_a_call_that_costs_money_is_sent_shorter_and_says_so(log: Log, tmp_path: Path) -> None:
    cache, vendor, kept = AnswerCache(tmp_path / "a.sqlite", days=1, mib=1), Vendor(), books(log)
    plain = link(kept, vendor, cache=cache)
    short = RemoteLink(plain._billed, kept, plain._guards, cache, Shortening(STRUCTURAL))
    request = replace(ASKED, turns=(*ASKED.turns, tool(json.dumps(list(range(30)), indent=4))))
    await Gateway([short], vendor).generate(request)
    [sent] = vendor.asked
    assert sent.turns[1].content == str(list(range(30))).replace(" ", "")
    await Gateway([short], vendor).generate(request)
    first, hit = await called(log)
    left = len(request.turns[1].content) - len(sent.turns[1].content)
    assert (first.compressed, hit.compressed, hit.cache) == (left, left, "hit") and len(vendor.asked) == 1
    assert short.most(request) < plain.most(request)  # type: ignore[operator]  # both are known
    assert isinstance(sent, GenerateRequest)


def test_the_command_pairs_both_ways_and_prints_the_setting(tmp_path: Path) -> None:
    words = ("router", "compress", "--profile", "scripted", "--items", "6", "--json", "--stage", "extractive")
    summary = ("--stage", "summary", "--summarizer", "scripted/", "--longest", "100")
    found = agent0(*words, *summary, home=tmp_path).json
    assert [(one["way"], one["tasks"]) for one in found["ways"]] == [("plain", 6), ("compressed", 6)]
    assert (
        found["settings"]["loss95"] > 0.3 and 0 <= found["shorter"] < 0.1
    )  # six tasks show nothing, equal as they are
    plan = CompressionSettings.model_validate(found["settings"])
    assert plan.stages == ("extractive", "summary") and (found["summaries"], found["without"]) == (0, 0)
    assert (plan.summarizer, plan.measured_summarizer) == ("scripted/", "") and plan.version.endswith(", scripted/")
    with pytest.raises(ConfigError, match="by none measured"):  # no output was long enough
        check_compression(plan)
