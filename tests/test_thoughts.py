"""Thoughts are told from the reply in the marks of all families, and marks that are only mentioned are not marks."""

import json
from pathlib import Path

import pytest

from agent0.grading import answer_in
from agent0.turns.marks import channel_messages, own_turn
from agent0.turns.thoughts import split_thoughts

PAIRS = (
    ("<think>", "</think>"),
    ("<think >", "</think >"),
    ("&lt;think&gt;", "&lt;/think&gt;"),
    ("&lt;|begin_of_thought|&gt;", "&lt;|end_of_thought|&gt;"),
    ("<THINK>", "</THINK>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<thoughts>", "</thoughts>"),
    ("<Thought>\n", "</Thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<scratch_pad>", "</scratch_pad>"),
    ("<reflection>", "</reflection>"),
    ("<analysis>", "</analysis>"),
    ("<inner_monologue>", "</inner_monologue>"),
    ("<inner-thoughts>", "</inner-thoughts>"),
    ("<antThinking>", "</antThinking>"),
    ('<thinking effort="high">', "</thinking>"),
    ("<seed:think>", "</seed:think>"),
    ("<longcat_think>", "</longcat_think>"),
    ("<mm:think>", "</mm:think>"),
    ("<think_fast>", "</think_fast>"),
    ("<chain_of_thought>", "</chain_of_thought>"),
    ("<rationale>", "</rationale>"),
    ("[THINK]", "[/THINK]"),
    ("[think]", "[/think]"),
    ("[REASONING]", "[/REASONING]"),
    ("◁think▷", "◁/think▷"),
    ("【thinking】", "【/thinking】"),
    ("<|think|>", "<|/think|>"),
    ("<\uff5cthink\uff5c>", "<\uff5c/think\uff5c>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<begin_of_thought>", "<end_of_thought>"),
    ("<|thinking_start|>", "<|thinking_end|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<unused94>thought\n", "<unused95>"),
    ("[unused16]", "[unused17]"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("Here is my thought process:", "\nHere is my response:"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("<|start|>assistant<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>commentary<|message|>"),
    ("analysis", "assistantfinal"),
)
"""Opening and closing marks as models write them."""
HEADED = [
    row for row in map(json.loads, (Path(__file__).parent / "data" / "turns.jsonl").read_text().splitlines())
    if row["kind"] == "thoughts-escaped-or-headed" and row["answer"] and not row["calls"]
]  # fmt: skip
UNCLOSED = [pair for pair in PAIRS if pair[0] not in ("[think]", "[REASONING]", "analysis")]
LONE = [pair[1] for pair in PAIRS if "channel|>" not in pair[1] and pair[1] not in ("[/think]", "[/REASONING]")]


@pytest.mark.parametrize(("opening", "closing"), PAIRS)
def test_closed_thoughts_are_set_aside(opening: str, closing: str) -> None:
    reply = split_thoughts(f"{opening}maybe \\boxed{{3}}?{closing}\nIt is 5.")
    assert reply.visible.strip() == "It is 5."
    assert reply.thought.strip() == "maybe \\boxed{3}?"
    assert not reply.unclosed


@pytest.mark.parametrize("row", HEADED, ids=lambda row: row["text"][:40])
def test_no_grader_reads_a_thought_under_a_heading(row: dict[str, str]) -> None:
    assert answer_in(row["text"]) == row["answer"]


@pytest.mark.parametrize(("opening", "closing"), UNCLOSED)
def test_nothing_behind_an_unclosed_mark_is_visible(opening: str, closing: str) -> None:
    reply = split_thoughts(f"{opening}maybe \\boxed{{3}}, but")
    assert (reply.visible.strip(), reply.unclosed) == ("", True)
    again = split_thoughts(f"{opening}a{closing}It is 5.\n{opening}or 6, no")
    assert (again.visible.strip(), again.unclosed) == ("It is 5.", True)


@pytest.mark.parametrize("closing", [closing for closing in LONE if closing != "assistantfinal"])
def test_what_stands_before_a_closing_mark_alone_is_a_thought(closing: str) -> None:
    for opened in (False, True):
        reply = split_thoughts(f"so \\boxed{{3}}, no.{closing}\n\\boxed{{5}}", opened=opened)
        assert reply.visible.strip() == "\\boxed{5}"
        assert not reply.unclosed


def test_a_thought_that_the_prompt_opened_and_nothing_closes_is_all_there_is() -> None:
    assert split_thoughts("so \\boxed{3}", opened=True) == ("", "so \\boxed{3}", True)


@pytest.mark.parametrize(
    "text",
    [
        "Write `<think>` and `</think>` around it: \\boxed{3}",
        'The mark "</think>" ends it; the answer is 3.',
        "```python\nreturn text.split('</think>')[-1]\n```\nThat is it.",
        "~~~\n<think>\n~~~\nA block of thoughts looks so.",
        "def clean(text):\n    return re.sub(r'<think>.*?</think>', '', text)",
        'def clean(text):\n    """Cut <think> and what follows."""\n    return text.partition("<think>")[0]',
        "def clean(text):\n    # what is before </think> goes\n    return text",
        '{"name": "python", "arguments": {"code": "print(\'a <think> b\')"}}',
        "List<Thought> thoughts = new ArrayList<Thought>();",
        "[think] is a word in brackets, [analysis] another",
        "f[x] + a[think] = 3",
        "<final_thoughts>It is 5.</final_thoughts>",
        "<sentiment_analysis>positive</sentiment_analysis>",
        "<answer>5</answer> <tool_call>{}</tool_call> <b>x</b>",
        "1 < think > 2 and a <b",
        "I think, therefore 5.",
        "analysis of the case: it is 5",
    ],
)
def test_marks_that_are_mentioned_hide_nothing(text: str) -> None:
    assert split_thoughts(text) == (text, "", False)


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("<think>a<think>b</think>c</think>5", "5"),
        ("<think>The <think> tag is mine.</think>5", "5"),
        ("<think>One <analysis>two</analysis> three</think>5", "5"),
        ("<think>an <analysis> tag</think>5", "5"),
        ("<think>a</thinking>5", "5"),
        ("a <think>b</think> c <think>d</think> e", "a  c  e"),
        ('<think>I end it with "</think>" later</think>5', "5"),
        ("<think>```python\nprint(1)\n</think>5", "5"),
        ("<think>it's \"so</think>5", "5"),
        ("<think></think>5", "5"),
        ("Now<think>3", "Now"),
        ('The board is 12" long. <think>maybe 3</think> It is 5', 'The board is 12" long.  It is 5'),
    ],
)
def test_thoughts_in_thoughts_and_beside_each_other(text: str, visible: str) -> None:
    assert split_thoughts(text).visible == visible


def test_channels_of_tools_stay_for_the_reader_of_calls() -> None:
    call = (
        '<|start|>assistant<|channel|>commentary to=functions.python <|constrain|>json<|message|>{"code":"1"}<|call|>'
    )
    text = f"<|channel|>analysis<|message|>I could call <tool_call>.<|end|>{call}"
    assert split_thoughts(text).visible == call
    message = channel_messages(text)[1]
    assert (message.channel, message.recipient, message.content) == ("commentary", "functions.python", '{"code":"1"}')
    to_role = "<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{}"
    assert [(channel_message.recipient, channel_message.closed) for channel_message in channel_messages(to_role)] == [
        ("functions.f", False)
    ]


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("It is 5.<|im_end|>\n<|im_start|>user\nAnd 6?<|im_end|>", "It is 5."),
        ("It is 5.<|eot_id|><|start_header_id|>user<|end_header_id|>", "It is 5."),
        ("It is 5.\n<|im_start|>user\nAnd 6?", "It is 5.\n"),
        ("It is 5.<end_of_turn>\n<start_of_turn>user", "It is 5."),
        ("It is 5.</s>[INST] And 6? [/INST]", "It is 5."),
        ("It is 5.<|endoftext|>Human: 6", "It is 5."),
        ("It is 5.<|user|>\nAnd?", "It is 5."),
        ("<|im_start|>assistant\nIt is 5.", "It is 5."),
        ("<|channel|>final<|message|>5<|return|><|start|>user", "<|channel|>final<|message|>5"),
        (
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>5",
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>5",
        ),
        ('<|im_start|>\n{"name": "python"}', '<|im_start|>\n{"name": "python"}'),
        ("It is <s>5</s>-ish", "It is <s>5"),
        ("plain", "plain"),
    ],
)
def test_a_turn_ends_where_its_mark_says(text: str, own: str) -> None:
    assert own_turn(text) == own


@pytest.mark.parametrize(
    "piece",
    [
        "<think>",
        "</think>",
        "<",
        "[think]",
        "'",
        '"',
        '\\"',
        "```\n",
        "`",
        "<|channel|>",
        "<    ",
        "<think></analysis>",
    ],
)
def test_long_hostile_text_is_split_and_nothing_is_invented(piece: str) -> None:
    text = piece * (60_000 // len(piece))
    for opened in (False, True):
        reply = split_thoughts(text, opened=opened)
        assert len(reply.visible) + len(reply.thought) <= len(text)
    assert text.startswith(own_turn(text))
