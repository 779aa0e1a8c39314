"""A model that needs no weights: a pure function of the request that proposes, guesses, calls tools and learns.

It plays the loop's story for tests and examples: its adapter is JSON with a skill, and skill makes it call its tool
instead of guessing. It may know a family's answer, because nothing is concluded from how well it does.
"""

import asyncio
import codecs
import json
import math
import random
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from statistics import fmean
from typing import Literal

from agent0.chat_format import ACTION_INPUT, CLOSE, OPEN, format_action, format_call
from agent0.errors import ConfigError, OperationError
from agent0.events.base import sha256
from agent0.events.values import Artifact, Turn, Usage
from agent0.ports.models import GenerateRequest, Generation
from agent0.ports.storage import Artifacts
from agent0.ports.training import Sample, TrainingResult, TrainJob
from agent0.rollout.parsing import parse_turn
from agent0.settings import ActorConfig
from agent0.tasks.families import Family, Params, families
from agent0.tools.builtin.check import RIGHT, WRONG
from agent0.turns.observations import plain_output

ROLES = {"system": 1, "user": 2, "assistant": 3, "tool": 4}
END = 5
"""Token ids below 256 are control tokens, which no text encodes to; the others hold up to four bytes of text."""

_own_answer = re.compile(r"^Is your answer (.*) right\? Reply with Yes or No", re.DOTALL)
_tagged_passage = re.compile(r"<passage>\n(.*)\n</passage>", re.DOTALL)
_gap = re.compile(r"Which word is missing: (.*___.*)\Z", re.DOTALL)
_option = re.compile(r"latency=(\d{1,3}(?:\.\d{1,6})?)")


def encode(text: str) -> tuple[int, ...]:
    """Encode ``text`` as token ids: four UTF-8 bytes each, with a leading 1 that marks the length of each id."""
    data = text.encode(errors="replace")
    return tuple(int.from_bytes(b"\x01" + data[n : n + 4], "big") for n in range(0, len(data), 4))


def decode(ids: Sequence[int]) -> str:
    """The text of ``ids``; control tokens have none."""
    return _bytes(ids).decode(errors="ignore")


def _bytes(ids: Iterable[int]) -> bytes:
    return b"".join(i.to_bytes((i.bit_length() + 7) // 8, "big")[1:] for i in ids if i >= 256)


def _ends(ids: Sequence[int], start: int) -> Iterator[int]:
    """Where the text of each prefix of ``ids`` ends, in characters after ``start``; half a character is none."""
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    return accumulate((len(decoder.decode(_bytes((token,)))) for token in ids), initial=start)


class Scripted:
    """The model. ``actor.model`` may be ``latency=SECONDS``, the time each call then takes."""

    name = "scripted"

    def __init__(self, artifacts: Artifacts, actor: ActorConfig | None = None) -> None:
        """Raises ConfigError for another ``actor.model``."""
        self._latency, self._artifacts = latency(actor), artifacts

    async def generate(self, request: GenerateRequest) -> Generation:
        """The same request gives the same turn; at temperature 0 whatever the seed."""
        start = time.monotonic()
        if self._latency:
            await asyncio.sleep(self._latency)
        skill = skill_of(request.adapter, self._artifacts)
        greedy = request.sampling.temperature == 0
        key = "greedy" if greedy else f"{request.sampling.seed} {request.sampling.temperature}"
        rng = random.Random(sha256(f"{key} {skill} {[(t.role, t.content) for t in request.turns]}"))
        text = _as_asked(request, _say(request, skill, rng)).removeprefix(request.prefill)
        ids, finish = _limited(text, request.sampling.max_tokens)
        prompt = _context(request)
        return Generation(
            text=request.prefill + decode(ids),
            token_ids=ids,
            logprobs=tuple(round(math.log(rng.uniform(0.3, 1.0)), 6) for _ in ids),
            prompt_ids=prompt,
            finish=finish,
            usage=Usage(prompt_tokens=len(prompt), completion_tokens=len(ids), wall_s=time.monotonic() - start),
            model=self.name,
            ends=tuple(_ends(ids, len(request.prefill)))[1:],
        )

    async def close(self) -> None:
        """There is nothing to give back."""


class ScriptedTrainer:
    """Raises the skill of an adapter where calling tools was rewarded above guessing, and lowers it where not."""

    def __init__(self, artifacts: Artifacts, actor: ActorConfig | None = None) -> None:
        """As the model's: a training takes ``latency`` too."""
        self._latency, self._artifacts = latency(actor), artifacts

    async def train(self, job: TrainJob) -> TrainingResult:
        """Same job, same adapter."""
        if self._latency:
            await asyncio.sleep(self._latency)
        before = skill_of(job.parent, self._artifacts)
        gain = _gain(job.samples)
        skill = max(0, before + gain)
        body = {"skill": skill, "seed": job.seed, "parent": job.parent.sha256 if job.parent else ""}
        adapter = self._artifacts.put(json.dumps(body, sort_keys=True).encode(), "application/json")
        tokens = sum(sum(s.trajectory.mask) for s in (*job.samples, *job.replay))
        metrics = {"skill": float(skill), "lesson": float(gain), "steps": 1.0, "tokens": float(tokens)}
        return TrainingResult(adapter, metrics)


def latency(actor: ActorConfig | None) -> float:
    """Seconds that the scripted model takes for a turn, by its name.

    Raises:
        ConfigError: it has another name.
    """
    variant = actor.model if actor else ""
    match = _option.fullmatch(variant)
    if variant and not match:
        fix = "Leave the setting model empty; latency=SECONDS makes it slow."
        raise ConfigError(f"The scripted model has no variant {variant[:80]!r}.", fix=fix)
    return float(match[1]) if match else 0.0


def _as_asked(request: GenerateRequest, text: str) -> str:
    """Its calls as actions, where the first turn asks for these."""
    if request.prefill or not request.turns or ACTION_INPUT not in request.turns[0].content or CLOSE not in text:
        return text
    calls = parse_turn(text).calls
    actions = "\n".join(call.raw if call.error else format_action(call.name, call.arguments) for call in calls)
    return text[: text.index(OPEN)] + actions


def skill_of(adapter: Artifact | None, artifacts: Artifacts) -> int:
    """The skill an adapter holds, 0 for the base.

    Raises:
        OperationError: the artifact is no adapter of this model.
    """
    if adapter is None:
        return 0
    try:
        return int(json.loads(artifacts.get(adapter))["skill"])
    except (ValueError, KeyError, TypeError) as error:
        raise OperationError("This adapter is not the scripted model's.", f"Artifact {adapter.sha256[:12]}.") from error


def _gain(samples: Sequence[Sample]) -> int:
    """1 where turns with a tool call have the higher mean advantage, -1 where the lower, 0 where none can be told;
    without both kinds (a teacher's samples) 1 where anything was rewarded."""
    with_tool: list[float] = []
    without: list[float] = []
    for sample in samples:
        path = sample.trajectory
        sampled = decode([i for i, is_sampled in zip(path.token_ids, path.mask, strict=True) if is_sampled])
        (with_tool if OPEN in sampled or ACTION_INPUT in sampled else without).append(sample.advantage)
    if with_tool and without:
        gap = fmean(with_tool) - fmean(without)
        return (gap > 0) - (gap < 0)
    return int(any(sample.advantage > 0 for sample in samples))


def _context(request: GenerateRequest) -> tuple[int, ...]:
    """The conversation as tokens, up to and including the prefill."""
    ids: list[int] = []
    for turn in request.turns:
        ids += [ROLES[turn.role], *_content(turn), END]
    return (*ids, ROLES["assistant"], *encode(request.prefill))


def _content(turn: Turn) -> tuple[int, ...]:
    """Sampled ids as they were, after whatever text was forced before them."""
    sampled = tuple(i for i in turn.token_ids if i != END)
    text = decode(sampled)
    if sampled and turn.content.endswith(text):
        return encode(turn.content[: len(turn.content) - len(text)]) + sampled
    return encode(turn.content)


def _limited(text: str, limit: int) -> tuple[tuple[int, ...], Literal["stop", "length"]]:
    ids = (*encode(text), END)
    if len(ids) <= limit:
        return ids, "stop"
    return encode(decode(ids[:limit])), "length"


def _say(request: GenerateRequest, skill: int, rng: random.Random) -> str:
    user_turns = [(index, turn.content) for index, turn in enumerate(request.turns) if turn.role == "user"]
    question = user_turns[-1][1] if user_turns else ""
    if judged := _own_answer.search(question):
        return _critique([text for _, text in user_turns[:-1]], judged[1], rng)
    for index, text in reversed(user_turns):
        if long := _long_task(text):
            written = sum(turn.role == "assistant" for turn in request.turns[index:])
            return _act(*long, written, bool(request.prefill), skill, rng)
    if task := _task(question):
        return _attempt(request, *task, skill, rng)
    if passage := _tagged_passage.search(question):
        return _about(passage[1], rng)
    if gap := _gap.search(question):
        return _filled(question, gap, rng)
    if target := requested(question):
        return _proposal(*target, skill, rng)
    return "I cannot tell."


def _about(passage: str, rng: random.Random) -> str:
    """A question about a word of a sentence of ``passage``, which it leaves out; now and then one that asks nothing."""
    sentences = [" ".join(text.split()) for text in re.split(r"(?<=[.!?])\s+|\n\s*\n", passage)]
    sentence = rng.choice([text for text in sentences if len(text.split()) > 3] or sentences)
    word = rng.choice([word for word in re.findall(r"\w+", sentence) if sentence.count(word) == 1] or ["none"])
    question = f"Which word is missing: {sentence.replace(word, '___')}"
    return f"Question: {question}\nAnswer: {word}\nSentence: {sentence}" if rng.random() < 0.8 else sentence


def _filled(text: str, gap: re.Match[str], rng: random.Random) -> str:
    """The word of the passage above a question that fills its gap; a guess where there is none."""
    before, _, after = " ".join(gap[1].split()).partition("___")
    word = re.search(rf"{re.escape(before)}(\w+){re.escape(after)}", " ".join(text[: gap.start()].split()))
    return f"\\boxed{{{word[1]}}}" if word and rng.random() < 0.7 else "\\boxed{nothing}"


def _critique(questions: Sequence[str], answer: str, rng: random.Random) -> str:
    """Yes or No of its own answer, right in four of five cases; nothing where no task was asked."""
    posed = next((task for text in reversed(questions) if (task := _long_task(text) or _task(text))), None)
    if posed is None:
        return "I cannot tell."
    right = answer.strip() == posed[0].solve(posed[1])
    return "Yes" if right == (rng.random() < 0.8) else "No"


def _long_task(text: str) -> tuple[Family, Params] | None:
    """The long task that ``text`` asks as a whole."""
    for entry in families(long=True).values():
        if (params := entry.parse(text.strip())) is not None:
            return entry, params
    return None


def _task(text: str) -> tuple[Family, Params] | None:
    """The task that ``text`` or a line of it asks, alone or after a label."""
    for line in (text, *text.splitlines()):
        for body in (line.strip(), line.partition(": ")[2].strip()):
            for entry in families().values() if body else ():
                if (params := entry.parse(body)) is not None:
                    return entry, params
    return None


def requested(text: str) -> tuple[Family, int] | None:
    """Family and level that a request for a task names: after these words where they are there, else the last ones."""
    tokens = re.findall(r"[a-z_]+|\d+", text[-4000:].lower())
    by_name = families(long=None)
    named = [index for index, token in enumerate(tokens) if token in by_name]
    levels = [index for index, token in enumerate(tokens) if token.isdigit()]
    if not named or not levels:
        return None
    entry, level = (_after(tokens, label, places) for label, places in (("family", named), ("level", levels)))
    return by_name[entry], min(max(int(level), 1), by_name[entry].levels)


def _after(tokens: Sequence[str], label: str, places: Sequence[int]) -> str:
    """The last word of ``places`` that follows ``label``, else the last at all."""
    labelled = [index for index in places if index and tokens[index - 1] == label]
    return tokens[(labelled or places)[-1]]


def _proposal(entry: Family, level: int, skill: int, rng: random.Random) -> str:
    """A question; now and then one without sense or one that is asked ever again."""
    chance = rng.random()
    if chance < 0.15 * 0.7**skill:
        return f"{entry.name} {level} is a nice number, is it not"
    fresh = random.Random(f"{entry.name} {level}") if chance > 0.93 else rng
    return entry.render(entry.sample(level, fresh), fresh)


def _attempt(request: GenerateRequest, entry: Family, params: Params, skill: int, rng: random.Random) -> str:
    last = request.turns[-1]
    if entry.check and any(tool.name == "check" for tool in request.tools) and not request.prefill:
        return _tried(request.turns, entry, params, skill, rng)
    if last.role == "tool":
        output = last.content.strip() if entry.check else plain_output(last.content)
        return f"\\boxed{{{output}}}" if output and "Error" not in output else _guess(entry, params, rng)
    if not request.prefill and rng.random() > tool_share(skill):
        return _guess(entry, params, rng)
    call = format_call(*entry.call(params))
    return call if request.prefill or rng.random() > 0.04 else call[: len(call) // 2]


def _tried(turns: Sequence[Turn], entry: Family, params: Params, skill: int, rng: random.Random) -> str:
    """An answer put to the tool ``check``: what another tool printed, or its own, at first often a wrong one; then
    another, and what was right is given."""
    feedback = turns[-1].content if turns[-1].role == "tool" else WRONG
    if feedback == RIGHT:
        calls = [call for turn in turns if turn.role == "assistant" for call in parse_turn(turn.content).calls]
        return f"\\boxed{{{calls[-1].arguments['answer']}}}"
    right = entry.solve(params)
    answer = right if rng.random() < tool_share(skill) else _near(right, rng)
    return format_call("check", {"answer": answer if feedback.startswith(WRONG) else feedback.strip()})


def _act(entry: Family, params: Params, turn: int, forced: bool, skill: int, rng: random.Random) -> str:
    """Turn number ``turn`` of the family's script: at first often a guess instead, later now and then with a step's
    answer left out or wrong, both less often with skill."""
    script = entry.script(params) if entry.script else ()
    if not forced and turn == 0 and rng.random() > effort(skill):
        return _guess(entry, params, rng)
    step = script[min(turn, len(script) - 1)]
    if rng.random() < 0.35 * 0.7**skill:
        step = _slipped(entry, params, step, rng)
    return step[max(step.find(OPEN), 0) :] if forced else step


def _slipped(entry: Family, params: Params, step: str, rng: random.Random) -> str:
    """``step`` with what it submits left out or spoilt; whatever else it does is done."""
    calls = parse_turn(step).calls
    if not calls:
        return f"\\boxed{{{_near(entry.solve(params), rng)}}}"
    left_out, formatted = rng.random() < 0.5, []
    for call in calls:
        arguments = dict(call.arguments)
        if call.name == "submit_answer":
            if left_out:
                continue
            arguments["answer"] = _near(arguments["answer"], rng)
        formatted.append(format_call(call.name, arguments))
    return "\n".join(formatted)


def effort(skill: int) -> float:
    """Chance of going through a long task step by step rather than guessing its answer."""
    return 1 - 0.4 * 0.6**skill


def tool_share(skill: int) -> float:
    """Chance of calling the tool: a quarter at first, nearer to all of the time with each step of skill."""
    return 1 - 0.75 * 0.6**skill


def _guess(entry: Family, params: Params, rng: random.Random) -> str:
    """The answer, less often the harder the task; else something like it."""
    answer = entry.solve(params)
    return f"\\boxed{{{_near(answer, rng) if rng.random() > 0.4 / entry.level(params) else answer}}}"


def _near(answer: str, rng: random.Random) -> str:
    """Something like ``answer``."""
    number = answer.lstrip("-").isdigit()
    return str(int(answer) + rng.choice((-2, -1, 1, 2, 10))) if number else f"{answer[::-1]}?"
