"""What a chat template writes of calls is what is read, for each form that templates teach."""

from pathlib import Path

import pytest

from agent0.assembly.validate.call_forms import call_forms
from agent0.assembly.validate.template_check import CONVERSATIONS, report_of
from agent0.config.loading import load
from agent0.infra.engine.folder_template import renderer
from agent0.infra.engine.turn_forms import form_of
from agent0.rollout.parsing import parse_turn
from agent0.rollout.prompts import prompt, render
from agent0.rollout.student import specs_of
from agent0.rollout.tool_prompts import toolbox
from agent0.tools import tools

TEMPLATES = Path(__file__).parent / "data" / "templates"
OWN = {"qwen3.5": "<function=", "glm4.5": "<arg_key>", "qwen2.5": '{"name"', "qwen3": '{"name"', "llama3.1": '{"name"'}
"""What a call is written with in prompts: llama's tools go as text in our form."""
KNOWN = toolbox(specs_of(tuple(tools())))
HEAD = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}{% set f = c.function %}"
)
TAIL = "{% endfor %}<|end|>\n{% endfor %}"
ARGUMENTS = "{{ f.arguments | tojson }}"
EACH = "{% for k, v in f.arguments.items() %}"
VALUE = "{{ v if v is string else v | tojson }}"
DEEPSEEK = "<\uff5ctool\u2581call\u2581begin\uff5c>function<\uff5ctool\u2581sep\uff5c>{{ f.name }}\n```json\n"
TAUGHT = {
    "<tool_call> with JSON": f'<tool_call>\n{{"name": "{{{{ f.name }}}}", "arguments": {ARGUMENTS}}}\n</tool_call>',
    "<function=…> with <parameter=…>": "<tool_call>\n<function={{ f.name }}>\n"
    + f"{EACH}<parameter={{{{ k }}}}>\n{VALUE}\n</parameter>\n{{% endfor %}}</function>\n</tool_call>",
    "<invoke> with <parameter>": '<function_calls>\n<invoke name="{{ f.name }}">\n'
    + f'{EACH}<parameter name="{{{{ k }}}}">{VALUE}</parameter>\n{{% endfor %}}</invoke>\n</function_calls>',
    "<arg_key> and <arg_value>": "<tool_call>{{ f.name }}\n"
    + f"{EACH}<arg_key>{{{{ k }}}}</arg_key>\n<arg_value>{VALUE}</arg_value>\n{{% endfor %}}</tool_call>",
    "[TOOL_CALLS]": f"[TOOL_CALLS]{{{{ f.name }}}}[ARGS]{ARGUMENTS}",
    "channels of gpt-oss": "<|channel|>commentary to=functions.{{ f.name }} <|constrain|>json<|message|>"
    + f"{ARGUMENTS}<|call|>",
    "DeepSeek's marks": f"{DEEPSEEK}{ARGUMENTS}\n```<\uff5ctool\u2581call\u2581end\uff5c>",
    "Kimi's marks": "<|tool_call_begin|>functions.{{ f.name }}:0<|tool_call_argument_begin|>"
    + f"{ARGUMENTS}<|tool_call_end|>",
    "bare JSON": f'{{"name": "{{{{ f.name }}}}", "parameters": {ARGUMENTS}}}\n',
    "[python(…)]": "<|tool_call_start|>[{{ f.name }}("
    + f"{EACH}{{{{ k }}}}={{{{ v | tojson }}}}{{{{ ', ' if not loop.last }}}}{{% endfor %}})]<|tool_call_end|>",
}
MISSED = {"[python(…)]": {"a number and a truth value"}}
"""What a form cannot say here: JSON's ``true`` is no Python."""


@pytest.mark.parametrize("form", TAUGHT)
def test_what_a_template_teaches_is_read(form: str) -> None:
    report = report_of(renderer(HEAD + TAUGHT[form] + TAIL, {}))
    assert report.form == form
    assert {*report.lost} == MISSED.get(form, set()), report.lost
    assert f"{10 - len(report.lost)} of 10 read back" in str(report)


def test_a_template_that_writes_no_calls_says_so() -> None:
    report = report_of(renderer("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}", {}))
    assert report.form == "" and {*report.lost} == {*CONVERSATIONS}
    assert str(report) == "its chat template writes no calls; they go as text"


def test_what_a_template_refuses_or_garbles_is_named() -> None:
    refusing = HEAD.replace("{% set f", "{{ raise_exception('one call') if m.tool_calls | length > 1 }}{% set f")
    report = report_of(renderer(refusing + TAUGHT["bare JSON"] + TAIL, {}))
    assert report.lost == {"two calls": "the template refuses it"} and "(not: two calls)" in str(report)
    garbled = report_of(renderer(f"{HEAD}<tool_call>{{{{ f.name }}}} with {ARGUMENTS}</tool_call>{TAIL}", {}))
    assert garbled.form == "<tool_call> with JSON" and len(garbled.lost) == 10


@pytest.mark.parametrize(
    ("student", "form", "read", "note"),
    [
        ({"provider": "tiny"}, "", 0, "comes with Agent0"),
        ({"provider": "ollama", "model": "qwen3"}, "", 0, "not on this machine"),
        ({"provider": "transformers", "model": "qwen3.5"}, "<function=…> with <parameter=…>", 10, ""),
        ({"provider": "transformers", "model": "glm4.5"}, "<arg_key> and <arg_value>", 10, ""),
        ({"provider": "transformers", "model": "llama3.1"}, "bare JSON", 9, ""),
        ({"provider": "transformers", "model": "nothing"}, "", 0, "not on this machine"),
    ],
)
def test_the_forms_of_a_settings_models_are_known_by_role(
    student: dict[str, str], form: str, read: int, note: str, tmp_path: Path
) -> None:
    place = tmp_path / "model"
    if (template := TEMPLATES / f"{student.get('model', '')}.jinja").exists():
        place.mkdir()
        (place / "chat_template.jinja").write_text(template.read_text())
        (place / "special_tokens_map.json").write_text('{"bos_token": "<s>", "eos_token": "</s>"}')
    named = {**student, "model": str(place)} if student["provider"] == "transformers" else student
    settings = load("tiny", {f"run.student.{name}": value for name, value in named.items()}, env={})
    row = next(row for row in call_forms(settings) if row["role"] == "student")
    assert (row["form"], row["read"]) == (form, read) and note in row["note"] and bool(row["note"]) is bool(note)
    assert sum(not conversation["problem"] for conversation in row["conversations"]) == read
    assert len(row["conversations"]) == (10 if form else 0)


@pytest.mark.parametrize("template", OWN)
@pytest.mark.parametrize("domain", ["math", "code", "logic", "text"])
@pytest.mark.parametrize("long", [False, True])
def test_examples_of_a_prompt_are_in_the_form_that_the_template_teaches(template: str, domain: str, long: bool) -> None:
    render_template = renderer((TEMPLATES / f"{template}.jinja").read_text(), {"bos_token": "<s>", "eos_token": "</s>"})
    form = form_of(render_template)
    turns = render(prompt("full", domain, "student", long=long), {"question": "?", "domain": domain})
    shown = [turn.content for turn in turns if turn.role in ("system", "assistant") and "<tool_call>" in turn.content]
    assert shown
    for ours in shown:
        formed = form.with_own_calls(ours)
        calls, expected = (
            [(call.name, {k: f"{v}" for k, v in call.arguments.items()}) for call in parse_turn(text, KNOWN).calls]
            for text in (formed, ours)
        )
        assert OWN[template] in formed and calls == expected != []
        assert template in ("qwen3.5", "glm4.5") or formed == ours
