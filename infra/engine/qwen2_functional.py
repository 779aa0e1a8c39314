"""A small Qwen2 as a function of its weights: what transformers computes, in few and large tensor operations.

Where matrices are small, calling them costs more than multiplying. So adapters are added to matrices rather than
computed beside them, norms are folded into the matrices behind them, and padding is left out of all but attention.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding, pad, scaled_dot_product_attention, silu
from torch.utils.checkpoint import checkpoint

from agent0.infra.engine.formats.prefixes import Prefix
from agent0.infra.engine.formats.products import Adapted, ChosenLogprobs, Packing, Product, Single, beside
from agent0.infra.engine.memory_need import LARGEST

_INNER = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
_LENGTHS = 512
"""Tables of positions are made for multiples of so many."""

Pairs = Mapping[str, tuple[Tensor, Tensor, float]]
"""LoRA's A, B and scale by the name of the weight they are for."""
Order = Callable[[Tensor], Tensor]
"""Of a matrix's outputs, which are its rows."""


@dataclass(frozen=True)
class Shape:
    """What weights do not say of themselves. ``groups``: heads of keys and of values; ``width``: numbers a head."""

    layers: int
    heads: int
    groups: int
    width: int
    theta: float
    eps: float


@dataclass(frozen=True)
class Layer:
    """One layer's matrices: those with the same input are one, and hold the norm before them."""

    qkv: Product
    out: Product
    gate_up: Product
    down: Product


@dataclass(frozen=True)
class Weights:
    """A model's, with an adapter or without; differentiable where what they were made of is."""

    shape: Shape
    embed: Tensor
    layers: Sequence[Layer]
    head: Product
    frozen: bool = False
    """Whether the head is not trained, whatever else is."""

    def embedded(self, ids: Tensor) -> Tensor:
        """[N, hidden] for ``ids`` [N], at least in single precision."""
        states = embedding(ids, self.embed)
        return states.float() if states.dtype.itemsize < 4 else states


def shape_of(model: Any) -> Shape | None:
    """Of a model that transformers has loaded; None where it is not computed here: in another precision than single,
    on several devices, too large, or with anything but what a plain Qwen2 has."""
    config, parameters = model.config, list(model.parameters())
    rope = getattr(config, "rope_parameters", None) or {}
    plain = (
        type(model).__name__ == "Qwen2ForCausalLM"
        and config.hidden_act == "silu"
        and rope.get("rope_type") == "default"
        and set(config.layer_types) == {"full_attention"}
        and not config.attention_dropout
        and sum(parameter.numel() for parameter in parameters) <= LARGEST
        and len({parameter.device for parameter in parameters}) == 1
        and {parameter.dtype for parameter in parameters} == {torch.float32}
    )
    if not plain:
        return None
    heads, groups = int(config.num_attention_heads), int(config.num_key_value_heads)
    width = int(getattr(config, "head_dim", None) or config.hidden_size // heads)
    return Shape(int(config.num_hidden_layers), heads, groups, width, rope["rope_theta"], config.rms_norm_eps)


def parts_of(model: Any, adapter: str = "") -> tuple[dict[str, Tensor], Pairs] | None:
    """(parameters, pairs) of a model that peft holds ``adapter`` in, or of one without; None where the adapter is more
    than pairs beside the layers that are known here, or drops some of them at random."""
    pairs, prefix = {}, "base_model.model."
    if adapter and model.peft_config[adapter].bias != "none":
        return None
    for name, module in model.named_modules():
        if adapter in getattr(module, "lora_embedding_A", ()):
            return None
        if adapter in getattr(module, "lora_A", ()):
            drops = getattr(module.lora_dropout[adapter], "p", 0.0)
            if drops or adapter in module.lora_variant or name.rpartition(".")[-1] not in _INNER:
                return None
            a, b = module.lora_A[adapter].weight, module.lora_B[adapter].weight
            pairs[f"{name.removeprefix(prefix)}.weight"] = (a, b, float(module.scaling[adapter]))
    named = (
        (name.removeprefix(prefix).replace(".base_layer.", "."), parameter)
        for name, parameter in model.named_parameters()
    )
    return {name: parameter for name, parameter in named if ".lora_" not in name}, pairs


def weights_of(shape: Shape, parameters: Mapping[str, Tensor], pairs: Pairs, packing: Packing = Single) -> Weights:
    """From ``parameters`` by the names of the Hugging Face format, with scale B A added where there are ``pairs``."""

    def product(names: Sequence[str], norm: Tensor | None = None, order: Order = _as_they_are) -> Product:
        rows = torch.cat([_merged(parameters, pairs, f"{name}.weight") for name in names])
        biases = [parameters[f"{name}.bias"] for name in names if f"{name}.bias" in parameters]
        if biases:
            mixed = order(torch.cat([rows, torch.cat(biases)[:, None]], 1))
            return packing(_behind(mixed[:, :-1], norm), mixed[:, -1])
        return packing(_behind(order(rows), norm), None)

    layers = [
        Layer(*(product(*group) for group in _groups(shape, parameters, f"model.layers.{number}.")))
        for number in range(shape.layers)
    ]
    embed = parameters["model.embed_tokens.weight"]
    head = _normed(parameters.get("lm_head.weight", embed), parameters["model.norm.weight"])
    return Weights(shape, embed, layers, packing(head, None))


def adapted(weights: Weights, parameters: Mapping[str, Tensor], pairs: Pairs) -> Weights:
    """``weights`` with products of ``pairs`` beside theirs, which are not copied. ``parameters`` are those that they
    were made of."""

    def product(base: Product, names: Sequence[str], norm: Tensor | None, order: Order) -> Product:
        low = [pairs.get(f"{name}.weight") for name in names]
        widths = [len(parameters[f"{name}.weight"]) for name in names]
        both = beside([pair and (_behind(pair[0], norm), pair[1].T * pair[2]) for pair in low], widths)
        return base if both is None else Adapted(base, both[0], order(both[1].T).T.contiguous())

    layers = [
        Layer(
            *map(
                product,
                vars(layer).values(),
                *zip(*_groups(weights.shape, parameters, f"model.layers.{number}."), strict=True),
            )
        )
        for number, layer in enumerate(weights.layers)
    ]
    return replace(weights, layers=layers)


def _groups(shape: Shape, parameters: Mapping[str, Tensor], at: str) -> list[tuple[list[str], Tensor | None, Order]]:
    """The matrices of the layer ``at``, those with one input together: their names, the norm before them, and the order
    of their outputs."""
    q, k, v, out = (f"{at}self_attn.{name}" for name in _INNER[:4])
    gate, up, down = (f"{at}mlp.{name}" for name in _INNER[4:])
    first, second = (parameters[f"{at}{name}.weight"] for name in ("input_layernorm", "post_attention_layernorm"))
    return [
        ([q, k, v], first, partial(_paired, shape)),
        ([out], None, _as_they_are),
        ([gate, up], second, _as_they_are),
        ([down], None, _as_they_are),
    ]


def _as_they_are(rows: Tensor) -> Tensor:
    return rows


def _merged(parameters: Mapping[str, Tensor], pairs: Pairs, name: str) -> Tensor:
    if name not in pairs:
        return parameters[name]
    a, b, scale = pairs[name]
    weight: Tensor = torch.addmm(parameters[name], b, a, alpha=scale)
    return weight


def _behind(matrix: Tensor, norm: Tensor | None) -> Tensor:
    """``matrix`` [out, in] as [in, out], which holds the ``norm`` of its input."""
    return matrix.T if norm is None else _normed(matrix, norm)


def _normed(matrix: Tensor, norm: Tensor) -> Tensor:
    """``matrix`` [out, in] as [in, out] for inputs of length 1, after which ``norm`` [in] would have been applied."""
    scaled: Tensor = (matrix * (norm * len(norm) ** 0.5)).T
    return scaled


def _paired(shape: Shape, rows: Tensor) -> Tensor:
    """The rows of queries and keys in another order: what is turned together stands side by side."""
    both = (shape.heads + shape.groups) * shape.width
    turned = rows[:both].view(shape.heads + shape.groups, 2, shape.width // 2, -1).transpose(1, 2)
    return torch.cat([turned.reshape(both, -1), rows[both:]])


@dataclass(frozen=True)
class Packed:
    """Rows of tokens without their padding. ``ids`` and ``positions`` are [N]; ``places`` [N] says where each stands in
    a tensor [rows x longest] whose rows are filled up at the end."""

    rows: int
    longest: int
    ids: Tensor
    positions: Tensor
    places: Tensor

    def spread(self, values: Tensor) -> Tensor:
        """[N, …] as [rows, longest, …], zeros where nothing is."""
        wide = values.new_zeros(self.rows * self.longest, *values.shape[1:])
        return wide.index_copy(0, self.places, values).view(self.rows, self.longest, *values.shape[1:])

    def gather(self, values: Tensor) -> Tensor:
        """[rows, longest, …] as [N, …]."""
        return values.flatten(0, 1).index_select(0, self.places)


def packed(ids: Tensor, attention: Tensor) -> Packed:
    """``ids`` and ``attention`` are [rows, T]; where ``attention`` is 0 is padding, on whichever side."""
    real = attention.bool()
    positions, longest = (attention.cumsum(-1) - 1)[real], int(attention.sum(-1).max())
    return Packed(len(ids), longest, ids[real], positions, real.nonzero()[:, 0] * longest + positions)


def turns(shape: Shape, longest: int, device: torch.device) -> Tensor:
    """How far positions, at least ``longest`` of them, turn the pairs of a head: [positions, 1, width / 2], complex."""
    return _turns(shape.width, shape.theta, -(-longest // _LENGTHS) * _LENGTHS, device)


@lru_cache(maxsize=8)
def _turns(width: int, theta: float, longest: int, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return _turned(torch.arange(longest, device=device), width, theta)


def _turned(positions: Tensor, width: int, theta: float) -> Tensor:
    """How far ``positions`` [N], whole or not, turn the pairs of a head: [N, 1, width / 2], complex."""
    each = 1.0 / theta ** (torch.arange(0, width, 2, device=positions.device) / width)
    angles = positions[:, None] * each
    return torch.polar(torch.ones_like(angles), angles)[:, None]


def _turned_text(shape: Shape, text: "Packed", stretch: Tensor | None, before: Sequence[int]) -> Tensor:
    """As ``turns`` at the positions of ``text``, whose rows have so many tokens ``before`` them; those of each row
    times its ``stretch`` [rows] where there is one."""
    row = text.places // text.longest
    if stretch is not None:
        return _turned(text.positions * stretch[row], shape.width, shape.theta)
    by = turns(shape, text.longest + max(before, default=0), text.ids.device)
    return by[text.positions + torch.tensor(before, device=row.device)[row] if any(before) else text.positions]


@lru_cache(maxsize=8)
def _least(size: int, eps: float, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return torch.tensor((size * eps) ** 0.5, device=device)


def normed(x: Tensor, eps: float) -> Tensor:
    """``x`` [N, hidden] at length 1: what a norm does but for its weights."""
    length: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / torch.hypot(length, _least(x.shape[-1], eps, x.device))


def heads_of(shape: Shape, layer: Layer, x: Tensor, by: Tensor) -> Tensor:
    """Queries, keys and values of ``x`` [N, hidden], the first two turned ``by`` [N, 1, width / 2]:
    [N, heads + 2 groups, width]."""
    projected = layer.qkv(normed(x, shape.eps)).view(len(x), -1, shape.width // 2, 2)
    torch.view_as_complex(projected)[:, : shape.heads + shape.groups].mul_(by)
    return projected.flatten(2)


def gone_on(shape: Shape, layer: Layer, x: Tensor, attended: Tensor) -> Tensor:
    """``x`` [N, hidden] after a layer whose heads found ``attended`` [N, heads x width]."""
    x = layer.out(attended, x)
    gate, up = layer.gate_up(normed(x, shape.eps)).chunk(2, -1)
    return layer.down(silu(gate) * up, x)


def hidden(
    weights: Weights,
    text: Packed,
    keep: list[Tensor] | None = None,
    *,
    twice: bool = False,
    stretch: Tensor | None = None,
    prefixes: Sequence[Prefix] = (),
) -> Tensor:
    """What the head reads, [N, hidden]. Keys and values of each layer go to ``keep``: [rows, 2 groups, longest,
    width]. ``twice``: what a gradient needs of a layer is computed again rather than kept. ``stretch``: factors
    [rows], by which the positions of each row are multiplied. ``prefixes``: what stands before the rows, in their
    order."""
    shape, before = weights.shape, prefixes or [Prefix(text.rows, ())]
    earlier = [
        [prefix.layers[number] if prefix.layers else None for prefix in before] for number in range(shape.layers)
    ]

    def through(x: Tensor, layer: Layer, number: int) -> Tensor:
        wide = text.spread(heads_of(shape, layer, x, by)).transpose(1, 2)
        if keep is not None:
            keep.append(wide[:, shape.heads :].clone())  # a view would hold the queries, too
        parts = wide.split([prefix.rows for prefix in before])
        attended = torch.cat([_attended(shape, *part) for part in zip(parts, earlier[number], strict=True)])
        return gone_on(shape, layer, x, text.gather(attended.transpose(1, 2)).flatten(1))

    lengths = [prefix.length for prefix in before for _ in range(prefix.rows)]
    x, by = weights.embedded(text.ids), _turned_text(shape, text, stretch, lengths)
    for number, layer in enumerate(weights.layers):
        x = checkpoint(through, x, layer, number, use_reentrant=False) if twice else through(x, layer, number)
    return normed(x, shape.eps)


def _attended(shape: Shape, wide: Tensor, earlier: Tensor | None) -> Tensor:
    """[rows, heads, T, width] from queries, keys and values [rows, heads + 2 groups, T, width], each of which sees what
    is before it and all that is ``earlier``."""
    many = shape.heads > shape.groups
    if earlier is None:
        q, k, v = torch.split(wide, [shape.heads, shape.groups, shape.groups], 1)
        return scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=many)
    rows, length = len(wide), wide.shape[2]
    both = torch.cat([earlier.expand(rows, -1, -1, -1), wide[:, shape.heads :]], 2)
    k, v = torch.split(both, [shape.groups, shape.groups], 1)
    visible = torch.ones(length, both.shape[2], dtype=torch.bool, device=wide.device).tril(both.shape[2] - length)
    return scaled_dot_product_attention(wide[:, : shape.heads], k, v, attn_mask=visible, enable_gqa=many)


def logits(weights: Weights, ids: Tensor, attention: Tensor) -> Tensor:
    """[rows, T, vocabulary] for ``ids`` [rows, T]; zeros at padding."""
    scores = weights.head(hidden(weights, packed(ids, attention)))
    wide = scores.new_zeros(attention.numel(), scores.shape[-1])
    return wide.index_copy(0, attention.flatten().nonzero()[:, 0], scores).view(*attention.shape, -1)


def logprobs(
    weights: Weights,
    ids: Tensor,
    attention: Tensor,
    mask: Tensor,
    heat: float = 1.0,
    *,
    twice: bool = False,
    stretch: Tensor | None = None,
) -> Tensor:
    """[rows, T]: how likely each token is after those before it, at temperature ``heat``, where it is ``mask``; zeros
    elsewhere, and at a row's first token, which nothing predicts. ``stretch`` as for ``hidden``."""
    return chances(weights, ids, attention, mask, heat, twice=twice, stretch=stretch)[0]


def chances(
    weights: Weights,
    ids: Tensor,
    attention: Tensor,
    mask: Tensor,
    heat: float = 1.0,
    *,
    twice: bool = False,
    stretch: Tensor | None = None,
    among: Tensor | None = None,
    prefix: Sequence[Tensor] = (),
) -> tuple[Tensor, Tensor | None]:
    """(``logprobs``, entropies): the latter, [rows, T] in nats at the same places, are those of choosing among the
    tokens ``among`` [n] alone; None where there are none. ``prefix``: as for ``hidden``, of the tokens that every row
    begins with; ``mask`` is 0 there and at the token behind."""
    beginning = Prefix(len(ids), prefix)
    start = beginning.length
    ids, attention, mask = (tensor[:, start:] for tensor in (ids, attention, mask))
    states = hidden(weights, packed(ids, attention), twice=twice, stretch=stretch, prefixes=[beginning])
    chosen = mask.bool() & attention.bool() & (attention.cumsum(-1) > 1)
    before = (attention.flatten().cumsum(0) - 2)[chosen.flatten()]
    spread = _spread(weights, states[before], ids[chosen], heat, among)
    columns = [states.new_zeros(attention.shape).masked_scatter(chosen, column) for column in spread]
    wide = [pad(column, (start, 0)) for column in columns]
    return wide[0], None if among is None else wide[1]


def _spread(weights: Weights, states: Tensor, tokens: Tensor, heat: float, among: Tensor | None) -> list[Tensor]:
    """Log-probabilities [n] of ``tokens`` [n] after ``states`` [n, hidden], and their entropies ``among`` others."""
    if weights.frozen and among is None:
        return [ChosenLogprobs.apply(states, weights.head, tokens, heat)]
    logits = weights.head(states) / heat
    each = torch.log_softmax(logits, dim=-1).gather(-1, tokens[:, None])[:, 0]
    return [each] if among is None else [each, _entropy(logits[:, among])]


def _entropy(logits: Tensor) -> Tensor:
    """Of choosing by ``logits`` [N, n]: [N], nats."""
    logs = torch.log_softmax(logits, dim=-1)
    entropy: Tensor = -(logs.exp() * logs).sum(-1)
    return entropy
