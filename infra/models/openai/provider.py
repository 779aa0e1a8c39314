"""Models of any server that speaks OpenAI's API (vLLM, SGLang, llama.cpp, LM Studio), through the official client.

What the server can give is found out with one short request for each way to ask, best first, and recorded with every
turn. Token ids go out and come back where a server takes them, so that nothing is encoded again.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from agent0.errors import DependencyError, OperationError, RefusedError, TransientError
from agent0.events.values import Artifact, Capture, Turn, Usage
from agent0.infra.models.calls.thinking import chat_fields, heeding, template_arguments
from agent0.infra.models.llama_adapters import LlamaAdapters
from agent0.infra.models.openai.connection import Answered, Connection
from agent0.infra.models.openai.dialects import PATHS, ListedModel, Way, body, seed_of, ways
from agent0.infra.models.openai.gathering import Gatherer
from agent0.infra.models.openai.replies import Reading, ServerReply, untrainable
from agent0.infra.models.openai.server_facts import (
    LACKS,
    check_size,
    chosen_model,
    key_of,
    loaded_context,
    model_name,
    require_same,
    root_of,
)
from agent0.infra.models.tool_text import ATTEMPT
from agent0.infra.models.vllm_adapters import Readings, VllmAdapters
from agent0.infra.models.weights_probe import GREEDY, PROBE, GreedyText
from agent0.ports.models import GenerateRequest, Generation, Sampling
from agent0.ports.storage import Artifacts
from agent0.settings import ActorConfig

NOTHING: dict[str, object] = {}
THOUGHT = ("<think", "<|channel|>", "[THINK]", "<seed:think", "<|START_THINKING|>")
"""How models begin a thought that a server leaves in the text."""
SPECIAL = ("bos_token", "eos_token")
ENCODERS = Lock()  # two threads may not import transformers at once
HOTTEST = 2.0
"""The highest temperature of OpenAI's API, which vLLM keeps to: draws differ most there."""


class PromptEncoder(Protocol):
    """Encodes turns as token ids and decodes what was written (``agent0.infra.engine.chat_template.Chat``)."""

    stops: frozenset[int]

    def prompt(self, turns: Sequence[Turn], tools: Sequence[Any] = (), prefill: str = "") -> list[int]:
        """Encode a whole context, up to the opening of the assistant's next turn and ``prefill``."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ``ids`` without a closing end of turn."""
        ...

    def ends(self, ids: Sequence[int], start: int = 0) -> list[int]:
        """Find where the text of each of ``ids`` ends, counted on from ``start``."""
        ...


@dataclass(frozen=True)
class Profile:
    """What was found out about a server: its model, the way to ask it, the encoder of its tokens, its kind,
    and whether it began with a thought.

    ``models`` are the names of all that it serves, ``capture`` what came back of a turn, ``context`` the tokens that a
    call may have (0: it does not say), ``files`` where it has its model (a folder or GGUF file, as it names it),
    ``template`` its chat template with ``specials``, where it shows one, ``answers`` the model that its answer names,
    ``away`` addresses of its copies at which nothing answers.
    """

    model: str
    way: Way
    chat: PromptEncoder | None
    adapters: LlamaAdapters | VllmAdapters | None = None
    kind: str = ""
    thinks: bool = False
    models: tuple[str, ...] = ()
    capture: Capture = "text"
    context: int = 0
    files: str = ""
    template: str = ""
    specials: Mapping[str, str] = field(default_factory=dict)
    answers: str = ""
    away: tuple[str, ...] = ()


class OpenAIServer:
    """The ``Model`` port on one model of the server at ``actor.base_url``.

    ``key`` is that of a server which this process started, and which has the same adapters as long as it runs.
    ``shared`` is a folder for adapters that the server sees, too; None where it takes none. One that is not ``patient``
    sends each request once, and raises where the server is busy. ``weights`` is shared with servers that have the same
    model (``VllmAdapters``).

    Raises:
        AuthError: the variable that holds the key is not set.
    """

    streams = True

    def __init__(
        self,
        actor: ActorConfig,
        artifacts: Artifacts | None = None,
        key: str = "",
        shared: Path | None = None,
        patient: bool = True,
        weights: Readings | None = None,
    ) -> None:
        self._actor, self._root, self._artifacts = actor, root_of(actor.base_url), artifacts
        self._own, self._shared, self._weights = bool(key), shared, {} if weights is None else weights
        self.name = model_name(actor.model)
        self._connection = Connection(actor, self._root, key or key_of(actor), patient)
        self._gathered, self._draws = Gatherer(self._written), dict[int, bool]()
        self._found: Profile | None = None
        self._finding, self._refuses_stops = asyncio.Lock(), False

    async def generate(self, request: GenerateRequest) -> Generation:
        """Write one turn; a busy server is waited for.

        Raises:
            AuthError: the server refused the key.
            DependencyError: nothing answers there, something else does, it stays busy for ``timeout_s``, or it falls
                silent in the middle.
            TransientError: it failed, broke off, its first token took longer than ``timeout_s``, or another model or
                adapter than was asked answered.
            OperationError: it has no such model, or cannot do what is asked.
        """
        profile = await self.profile()
        if request.prefill and not profile.way.ids:
            why = "It takes text only." if profile.chat else "Its prompts go as text: run.<role>.tokenizer is empty."
            raise RefusedError("This server cannot begin a turn with given text.", why)
        most = min(request.joint, self._actor.parallel) if profile.way.dialect == "llama.cpp" else request.joint
        if most > 1 and profile.way.draws and await self._drawn(profile, most):
            return await self._gathered.ask(request, most)
        [written] = await self._written([request])
        return written

    async def _written(self, requests: Sequence[GenerateRequest]) -> list[Generation]:
        """A turn for each of ``requests``, which differ in their seeds alone: one call with the first one's."""
        profile, request = await self.profile(), requests[0]
        prompt = profile.chat.prompt(request.turns, request.tools, request.prefill) if profile.chat else []
        async with self._adapted(profile, request.adapter) as fields:
            answered = await self._ask(profile, request, prompt, fields, len(requests))
            if isinstance(profile.adapters, VllmAdapters):
                self._check_author(answered, str(fields.get("model", profile.answers)))
        if self._connection.patient and profile.adapters is None:
            require_same(profile.answers, [reply.served.model for reply in answered.replies], self._root)
        turns = [self._generation(profile, request, reply, answered) for reply in answered.replies]
        first = seed_of(request.sampling)
        return turns if len(turns) == 1 else [replace(turn, seed=first + n) for n, turn in enumerate(turns)]

    def _check_author(self, answered: Answered, asked: str) -> None:
        """Raises TransientError where an answer names another model, or adapter, than was ``asked``."""
        authors = {reply.served.model for reply in answered.replies} - {"", asked}
        if asked and authors:
            why = f"It was asked for {asked}. The answer is not learned from."
            raise TransientError(f"The server at {self._root} answered as {', '.join(sorted(authors))}.", why)

    async def profile(self, accept: Callable[[Profile], Profile] | None = None) -> Profile:
        """Find out, once, what the server has and gives; errors as for ``generate``. ``accept`` returns what the server
        has at this moment, or refuses it."""
        async with self._finding:
            if self._found is None or accept:
                profile = accept(await self._find()) if accept else await self._find()
                self._found = self._found or profile
                self.name = model_name(self._found.model)
            return self._found

    async def check(self, rank: int = 0) -> Profile:
        """Find out what the server does, that its own template, where it reads text, takes the result of a tool call;
        with a ``rank``, that it takes adapters of that rank, where it is a kind that may. Errors as ``generate``."""
        profile = await self.profile()
        if rank and profile.chat and profile.adapters is None:
            raise self._unswapped()
        if isinstance(profile.adapters, VllmAdapters):
            await profile.adapters.check(rank)
        if not profile.way.ids:
            try:
                await self._ask(profile, ATTEMPT, ())
            except OperationError as error:
                what = f"{profile.model} at {self._root} does not take a conversation with the result of a tool call."
                fix = "Start it with another chat template (llama-server --chat-template-file), or another model."
                raise OperationError(what, error.why, fix) from None
        return profile

    async def close(self) -> None:
        """Close the connections."""
        await self._gathered.close()
        await self._connection.close()

    def _adapted(self, profile: Profile, adapter: Artifact | None) -> AbstractAsyncContextManager[dict[str, object]]:
        """What a request says for ``adapter`` to answer, as long as this is held."""
        if profile.adapters is None and adapter:
            raise self._unswapped()
        return profile.adapters.using(adapter) if profile.adapters else nullcontext(NOTHING)

    def _unswapped(self) -> RefusedError:
        why = "Those of llama.cpp and vLLM are, where run.<role>.tokenizer is the folder of the server's weights."
        what = f"Adapters of the server at {self._root} are not swapped by the request."
        return RefusedError(what, why, "Use provider transformers.")

    async def _find(self) -> Profile:
        cards = await self.models()
        named = self._actor.model
        bases = [name for name, card in cards.items() if not card.parent or name == named]  # and no adapters
        model = chosen_model(named, bases, self._root)
        chat = await asyncio.to_thread(_encoder, self._actor) if self._actor.tokenizer else None
        prompt = chat.prompt(PROBE.turns, PROBE.tools) if chat else []
        if chat:
            await self._check_vocabulary(chat, model, prompt)
            check_size(cards[model], Path(self._actor.tokenizer).expanduser(), self._root)
        refused: Exception | None = None
        card, props = cards[model], await self._props()
        kind = "llama.cpp" if props else card.owned_by
        facts = Profile(
            model,
            Way("chat", "text"),
            chat,
            kind=kind,
            models=tuple(bases),
            files=str(props.get("model_path") or card.root),
            template=str(props.get("chat_template") or ""),
            specials={name: str(props[name]) for name in SPECIAL if props.get(name)},
        )
        for way in ways(kind, tokenizer=chat is not None):
            profile = replace(facts, way=way)
            try:
                [reply] = (await self._ask(profile, PROBE, prompt)).replies
            except LACKS as error:
                refused = error
                continue
            if not way.ids or reply.capture == "tokens":
                thinks = bool(reply.thinking) or reply.text.lstrip().startswith(THOUGHT)
                profile = replace(profile, thinks=thinks, capture=reply.capture, answers=reply.served.model)
                context = card.context or await loaded_context(self._connection.request, model)
                return replace(profile, adapters=self._adapters(profile), context=context)
        raise refused or RefusedError(f"The server at {self._root} writes nothing.")

    def _adapters(self, profile: Profile) -> LlamaAdapters | VllmAdapters | None:
        folder = Path(self._actor.tokenizer).expanduser()
        if self._artifacts is None or not any(folder.glob("*.safetensors")):
            return None
        if profile.way.dialect == "llama.cpp":
            ask = partial(self._connection.request, "GET", "/lora-adapters")
            return LlamaAdapters(ask, self._artifacts, folder, self._root, fixed=self._own)
        if profile.way.dialect != "completions" or self._shared is None:
            return None
        request, probe, same = self._connection.request, partial(self._probed, profile), (self._shared, self._weights)
        own, name = (self._artifacts, folder), profile.model
        return VllmAdapters(request, self.models, probe, *own, *same, model=name, address=self._root)

    async def _drawn(self, profile: Profile, most: int) -> bool:
        """Whether it draws ``most`` turns in a call, and choice 1 of them is what the next seed gives alone."""
        async with self._finding:
            if most not in self._draws:
                self._draws[most] = await self._draws_by_seed(profile, most)
            return self._draws[most]

    async def _draws_by_seed(self, profile: Profile, most: int) -> bool:
        prompt = profile.chat.prompt(PROBE.turns, PROBE.tools) if profile.chat else []
        first, second = (replace(PROBE, sampling=Sampling(temperature=HOTTEST, max_tokens=8, seed=n)) for n in (1, 2))
        try:
            together = (await self._ask(profile, first, prompt, count=most)).replies
        except LACKS:
            return False
        [alone] = (await self._ask(profile, second, prompt)).replies
        return together[0].ids != together[1].ids == alone.ids

    async def _probed(self, profile: Profile, model: str) -> GreedyText:
        """What ``model`` greedily writes to a fixed question."""
        prompt = profile.chat.prompt(PROBE.turns, PROBE.tools) if profile.chat else []
        [reply] = (await self._ask(profile, GREEDY, prompt, {"model": model})).replies
        return GreedyText(reply.ids, reply.logprobs, reply.margins)

    async def models(self) -> dict[str, ListedModel]:
        """The server's models by name, as it describes them.

        Raises:
            DependencyError: what answers is no such server.
        """
        try:
            answer = await self._connection.request("GET", "/v1/models")
            return {str(model["id"]): ListedModel.of(model) for model in answer["data"]}
        except (KeyError, TypeError, ValueError, OperationError) as error:
            why = f"What answers at {self._root} does not speak OpenAI's API: it has no list of models."
            raise DependencyError("A server of models", why, "Correct run.<role>.base_url.") from error

    async def _props(self) -> Mapping[str, object]:
        """What a llama.cpp server says of itself; nothing of another one."""
        try:
            props = await self._connection.request("GET", "/props")
            return props if isinstance(props, dict) and "default_generation_settings" in props else {}
        except (*LACKS, TypeError, ValueError):
            return {}

    async def _check_vocabulary(self, chat: PromptEncoder, model: str, prompt: Sequence[int]) -> None:
        """Its tokens must spell what ours do, where it can be asked."""
        try:
            answer = await self._connection.request("POST", "/detokenize", {"model": model, "tokens": list(prompt)})
            spelt = str(answer["content"] if "content" in answer else answer["prompt"])
        except (*LACKS, KeyError, TypeError, ValueError):
            return
        if spelt.strip() != chat.decode(prompt).strip():
            why = f"The tokenizer in {self._actor.tokenizer} spells its token ids differently."
            raise RefusedError(f"The server at {self._root} serves another model.", why, "Set run.<role>.tokenizer.")

    async def _ask(
        self,
        profile: Profile,
        request: GenerateRequest,
        prompt: Sequence[int],
        fields: dict[str, object] = NOTHING,
        count: int = 1,
    ) -> Answered:
        """Ask; where stop texts are refused, again without them, and from then on."""
        thinks = profile.thinks or self._actor.thinking not in ("", "off")
        request = heeding(request, thinks or self._refuses_stops)
        try:
            return await self._sent(profile, request, prompt, fields, count)
        except RefusedError:
            if not request.sampling.stop:
                raise
        answered = await self._sent(profile, heeding(request, True), prompt, fields, count)
        self._refuses_stops = True
        return answered

    async def _sent(
        self, profile: Profile, request: GenerateRequest, prompt: Sequence[int], fields: dict[str, object], count: int
    ) -> Answered:
        stops = profile.chat.stops if profile.chat else ()
        options = {} if profile.way.ids else chat_fields(self._actor, profile.kind)
        content = {**body(profile.way, request, profile.model, prompt, stops, count), **fields, **options}
        answered = await self._connection.written(
            PATHS[profile.way.dialect],
            content,
            partial(Reading, profile.way, count, profile.chat.decode if profile.chat and profile.way.ids else None),
            [turn.content for turn in request.turns],
            None if request.prefill else request.listen,
            request.turn,
        )
        if not profile.way.ids:
            return answered
        return replace(answered, replies=[_checked(r.until(stops), prompt, self._root) for r in answered.replies])

    def _generation(self, profile: Profile, request: GenerateRequest, reply: ServerReply, call: Answered) -> Generation:
        text, ends = request.prefill + reply.text, reply.ends
        has_tokens = reply.capture == "tokens"
        if profile.chat and profile.way.ids and has_tokens:
            text = request.prefill + profile.chat.decode(reply.ids)
            ends = tuple(profile.chat.ends(reply.ids, len(request.prefill)))
        usage = Usage(
            prompt_tokens=reply.read,
            completion_tokens=reply.written,
            wall_s=call.seconds,
            first_s=call.first_s if profile.way.streams else None,
        )
        return Generation(
            text=text,
            token_ids=reply.ids if has_tokens else (),
            logprobs=reply.logprobs,
            prompt_ids=reply.prompt_ids if has_tokens else (),
            finish=reply.finish,
            usage=usage,
            model=self.name,
            ends=ends,
            capture=reply.capture,
            counted=reply.counted,
            served=reply.served,
            margins=reply.margins,
            thinking=reply.thinking,
            untrainable=untrainable(reply, request.sampling, constrained=bool(request.schema)),
        )


def _checked(reply: ServerReply, prompt: Sequence[int], root: str) -> ServerReply:
    """With the prompt that was sent, which must be the one that was read."""
    if (reply.prompt_ids and reply.prompt_ids != tuple(prompt)) or reply.read not in (0, len(prompt)):
        why = f"{len(prompt)} tokens were sent, {reply.read} were read."
        raise OperationError(f"The server at {root} changed the prompt.", why)
    return replace(reply, prompt_ids=tuple(prompt))


def _encoder(actor: ActorConfig) -> PromptEncoder:
    with ENCODERS:
        from agent0.infra.engine.chat_template import chat_of  # noqa: PLC0415 - of an extra

        return chat_of(Path(actor.tokenizer).expanduser(), template_arguments(actor))
