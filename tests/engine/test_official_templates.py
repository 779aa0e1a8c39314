"""What is sent to a model through transformers is what its official chat template makes of the documented messages."""

from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from agent0.chat_format import format_call
from agent0.errors import OperationError
from agent0.events.values import Turn
from agent0.infra.engine.chat_template import Chat
from agent0.infra.engine.folder_template import form_of_folder, renderer, special_tokens
from agent0.infra.engine.turn_forms import TurnForm, described_tool, form_of
from agent0.infra.models.tool_text import messages
from agent0.infra.tiny.tokenizer import make_tokenizer
from agent0.ports.models import ToolSpec
from agent0.rollout.prompts import prompt, render
from tests.ollama_chat import rendered

TEMPLATES = Path(__file__).parents[1] / "data" / "templates"
OFFICIAL = ("qwen2.5", "qwen3", "llama3.1", "llama3.2", "mistral-v0.3", "gemma2", "gemma3")
MARKED = OFFICIAL[:2]
PLAIN, UNLED = TurnForm(marked=False), TurnForm(marked=False, system=False)
FORMS = {"llama3.1": PLAIN, "llama3.2": PLAIN, "gemma3": PLAIN, "mistral-v0.3": UNLED, "gemma2": UNLED}
SPECIALS = {
    "llama3.1": {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
    "llama3.2": {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
    "mistral-v0.3": {"bos_token": "<s>", "eos_token": "</s>"},
    "gemma2": {"bos_token": "<bos>", "eos_token": "<eos>"},
    "gemma3": {"bos_token": "<bos>", "eos_token": "<eos>"},
}
TOOLS = (
    ToolSpec(
        "python",
        "Runs Python; prints are read.",
        {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
    ),
    ToolSpec("sympy", 'Solves "x" < 1 — exactly.', {"type": "object", "properties": {"of": {"type": "string"}}}),
)
Message = dict[str, Any]


def said(content: str, *calls: tuple[str, dict[str, Any]]) -> Message:
    """An assistant's message as transformers documents it."""
    made = [{"type": "function", "function": {"name": name, "arguments": given}} for name, given in calls]
    return {"role": "assistant", "content": content, **({"tool_calls": made} if made else {})}


def one(role: str, content: str) -> Message:
    return {"role": role, "content": content}


SYSTEM, ASKED, RAN = one("system", "Solve it."), one("user", "What is 12+34?"), ("python", {"code": "print(12+34)"})
CONVERSATIONS: dict[str, tuple[list[Message], bool]] = {
    "a question": ([ASKED], False),
    "system and tools": ([SYSTEM, ASKED], True),
    "tools without a system turn": ([ASKED, said("", RAN), one("tool", "46")], True),
    "a call and its result": ([SYSTEM, ASKED, said("I compute.", RAN), one("tool", "46")], True),
    "several calls, several results": (
        [SYSTEM, ASKED, said("Both.", RAN, ("sympy", {"of": "12+34"})), one("tool", "46"), one("tool", "[4, 6]")],
        True,
    ),
    "an error, then another try": (
        [
            SYSTEM, ASKED, said("", ("python", {"code": "print(12"})),
            one("tool", 'File "<string>", line 1\nSyntaxError: \'(\' was never closed'),
            said("Again.", RAN), one("tool", "46"), said("It is \\boxed{46}."), one("user", "Sure?"),
        ],
        True,
    ),
    "a malformed call": (
        [
            SYSTEM, ASKED, said('<tool_call>\n{"name": "python", \n</tool_call>'),
            one("tool", "The turn could not be read whole: no JSON."),
        ],
        True,
    ),
    "letters of all kinds": (
        [one("system", "Réponds 中文 \U0001f914."), one("user", "x ≤ \"y\" & <b> {'a': 1}\n\n\ttab"),
         said("Ça va.", ("python", {"code": "print('ß→\\n')"})), one("tool", "ß→\n\"quoted\" \\ and {{ braces }}")],
        True,
    ),
    "space around": ([one("system", " \n Solve it.\n"), one("user", "\n What is 12+34? \n"), said("46"), ASKED], False),
    "long": (
        [SYSTEM, ASKED, *[part for n in range(40) for part in (
            said(f"Step {n}.", ("python", {"code": f"print({n})" * 20})), one("tool", f"{n}\n" * 60))]],
        True,
    ),
}  # fmt: skip


def turns_of(conversation: list[Message]) -> tuple[Turn, ...]:
    """The same conversation as a run holds it: calls are the text that the model wrote."""
    found = []
    for message in conversation:
        calls = [format_call(**call["function"]) for call in message.get("tool_calls", ())]
        found.append(Turn(role=message["role"], content="\n".join(filter(None, [message["content"], *calls]))))
    return tuple(found)


def tokenizer_with(template: str) -> PreTrainedTokenizerFast:
    tokenizer = make_tokenizer(0)
    tokenizer.chat_template = (TEMPLATES / f"{template}.jinja").read_text()
    tokenizer.add_special_tokens(SPECIALS.get(template, {}))
    if template.startswith("gemma"):
        tokenizer.add_special_tokens({"additional_special_tokens": ["<start_of_turn>", "<end_of_turn>"]})
    return tokenizer


@pytest.fixture(scope="module", params=OFFICIAL)
def official(request: pytest.FixtureRequest) -> tuple[str, PreTrainedTokenizerFast, Chat]:
    tokenizer = tokenizer_with(request.param)
    return request.param, tokenizer, Chat(tokenizer)


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_prompts_are_those_of_the_official_templates(
    name: str, official: tuple[str, PreTrainedTokenizerFast, Chat]
) -> None:
    """Native messages where the template speaks our marks; else the plain ones that model servers get, too."""
    template, tokenizer, chat = official
    conversation, with_tools = CONVERSATIONS[name]
    turns, tools = turns_of(conversation), TOOLS if with_tools else ()
    sent: list[Message] = conversation if template in MARKED else [*messages(turns, tools)]
    if FORMS.get(template) == UNLED and sent[0]["role"] == "system":
        sent = [one("user", f"{sent[0]['content']}\n\n{sent[1]['content']}"), *sent[2:]]
    described = [described_tool(tool) for tool in tools] if template in MARKED else None
    expected = tokenizer.apply_chat_template(sent, tools=described, add_generation_prompt=True, tokenize=False)
    assert tokenizer.decode(chat.prompt(turns, tools)) == expected


@pytest.mark.parametrize("name", [name for name in CONVERSATIONS if name != "tools without a system turn"])
def test_ollama_makes_the_same_of_what_it_gets(name: str) -> None:
    """Its Go template of qwen2.5, but for the marks that are broken in what others wrote. (Without a system turn the
    tools are all of it: only the server knows what its model is told then.)"""
    conversation, with_tools = CONVERSATIONS[name]
    turns, tools = turns_of(conversation), TOOLS if with_tools else ()
    served = rendered({"messages": messages(turns, tools)}).replace("\u200b", "")
    chat = Chat(tokenizer := tokenizer_with("qwen2.5"))
    assert served == tokenizer.decode(chat.prompt(turns, tools))


@pytest.mark.parametrize("template", OFFICIAL)
def test_without_transformers_templates_render_the_same(template: str) -> None:
    tokenizer = tokenizer_with(template)
    specials = {key: str(value) for key, value in tokenizer.special_tokens_map.items()}
    ours = renderer(tokenizer.chat_template, specials)
    for conversation, with_tools in CONVERSATIONS.values():
        plain = [one(m["role"], m["content"]) for m in conversation if m["role"] != "tool"]
        if template.startswith(("mistral", "gemma")):
            plain = [one("user", "Hi."), said("Ho."), one("user", "So?")]
        tools = [described_tool(tool) for tool in TOOLS] if with_tools else []
        for opened in (True, False):
            found = tokenizer.apply_chat_template(
                plain, tools=tools or None, add_generation_prompt=opened, tokenize=False
            )
            assert ours(plain, tools, opened) == found


@pytest.mark.parametrize("template", OFFICIAL)
def test_the_form_of_a_template_is_found_from_its_folder(template: str, tmp_path: Path) -> None:
    tokenizer_with(template).save_pretrained(tmp_path)
    text = (TEMPLATES / f"{template}.jinja").read_text()
    assert form_of_folder(tmp_path, text) == FORMS.get(template, TurnForm())
    assert special_tokens(tmp_path)["eos_token"]


@pytest.mark.parametrize("template", OFFICIAL)
def test_what_was_sampled_stays_after_what_it_was_sampled_after(template: str) -> None:
    """Each context begins with the one before it and its answer, token by token: else nothing could be trained on."""
    chat = Chat(tokenizer_with(template))
    turns = render(prompt("full", "math", "student"), {"question": "What is 12+34?", "domain": "math"})
    seen: list[int] = []
    for text in (" I compute.\n" + format_call(*RAN), "\n\\boxed{46} "):
        now = chat.prompt(turns, TOOLS)
        assert now[: len(seen)] == seen
        ids = [*chat.written(text), chat.stop]
        seen = now + ids
        turns = (*turns, Turn(role="assistant", content=text, token_ids=tuple(ids)), Turn(role="tool", content="46"))
    assert chat.prompt(turns, TOOLS)[: len(seen)] == seen


def test_a_turn_ends_as_its_template_closes_it_though_the_tokenizer_names_another_end() -> None:
    tokenizer = tokenizer_with("gemma2")
    assert Chat(tokenizer).stops == {tokenizer.convert_tokens_to_ids(t) for t in ("<end_of_turn>", "<eos>")}
    assert Chat(tokenizer).stop == tokenizer.convert_tokens_to_ids("<end_of_turn>")


def test_a_template_that_refuses_or_loses_something_says_what() -> None:
    def refusing(text: str) -> str:
        with pytest.raises(OperationError) as caught:
            form_of(renderer(text, {}))
        return f"{caught.value.what} {caught.value.why}"

    assert "drops turn 0" in refusing("{{ messages[-1].content }}")
    assert "no users here" in refusing(
        "{% for m in messages %}{% if m.role == 'user' %}{{ raise_exception('no users here') }}{% endif %}{% endfor %}"
    )
    with pytest.raises(OperationError, match="cannot be read"):
        renderer("{% for %}", {})
    quoting = (
        "{% for m in messages %}{{ m.role }}{{ m.content | tojson if m.role == 'tool' else m.content }}{% endfor %}"
    )
    assert form_of(renderer(quoting, {})) == TurnForm(marked=False)


def test_the_templates_are_those_whose_source_is_named() -> None:
    from agent0.events.base import sha256

    named = (TEMPLATES / "SOURCES.md").read_text()
    files = [path for path in TEMPLATES.iterdir() if path.name != "SOURCES.md"]
    assert len(files) == 10
    for path in files:
        (row,) = [line for line in named.splitlines() if line.startswith(f"| `{path.name}` |")]
        assert f"| {sha256(path.read_bytes())[:12]}… |" in row
