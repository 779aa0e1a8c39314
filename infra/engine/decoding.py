"""Decoding with a small Qwen2 that is a function: equal prompts are read once, keys and values stay where they are, and
rows that ended make room for what is still written."""

from collections.abc import Callable, Collection, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from agent0.infra.engine.formats.packed_need import turns_at_once
from agent0.infra.engine.formats.prefixes import BLOCK, KeptBlock, Prefix, Prefixes, joined, length_of
from agent0.infra.engine.memory_need import READ, ROOM
from agent0.infra.engine.qwen2_functional import Shape, Weights, gone_on, heads_of, hidden, normed, packed, turns
from agent0.infra.engine.sampling import Batch, Row

APART = 64
"""Tokens by which prompts may differ that are gone on from side by side, beyond twice the length of the shortest."""
JOINING = 4
"""How many times as long, and as many tokens more, prompts may be of turns that join others: waiting costs more."""
CROWDED = 0.85
"""Share of rows still written below which the others are dropped: dropping copies what all have kept."""


class Cache:
    """Keys and values of every layer, [2, rows x groups, room, width], and of how many tokens of each row they are.

    What all rows begin with, their ``stem``, is kept once, and all queries meet it in one product (as in Hydragen,
    arXiv 2402.05099, section 3.1): [1, 2 groups, tokens, width] a layer, nothing where there is none. Lengths and
    places are those behind it.
    """

    def __init__(self, shape: Shape, lengths: Tensor, dtype: torch.dtype, stem: Sequence[Tensor] = ()) -> None:
        """Empty, for rows of so many tokens behind ``stem``."""
        self._shape, self.lengths, self.longest = shape, lengths, int(lengths.max())
        self._stem, self.stem_length = stem, length_of(stem)
        self._room = self.longest + ROOM
        sizes = (2, len(lengths) * shape.groups, self._room, shape.width)
        self._held = [torch.zeros(sizes, dtype=dtype, device=lengths.device) for _ in range(shape.layers)]
        self._hidden = self._mask = self._next = torch.empty(0)
        self._hide()

    def put(self, layer: int, places: Tensor, kept: Tensor) -> None:
        """Keys and values ``kept`` [n, 2 groups, T, width] of the rows at ``places`` [n]."""
        wide = self._held[layer].view(2, len(self.lengths), self._shape.groups, self._room, -1)
        wide[:, places, :, : kept.shape[2]] = torch.stack(torch.split(kept, self._shape.groups, 1))

    def grow(self) -> None:
        """Make room for another token a row, which is seen from now on."""
        if self.longest == self._room:
            self._widen()
        rows, groups = len(self.lengths), self._shape.groups
        device = self.lengths.device
        self._hidden[torch.arange(rows, device=device), self.lengths] = 0.0
        heads = torch.arange(2 * rows * groups, device=device).view(2, rows, groups).transpose(0, 1)
        self._next = (heads * self._room + self.lengths[:, None, None]).flatten()
        self.lengths, self.longest = self.lengths + 1, self.longest + 1
        self._mask = self._hidden[:, : self.longest].repeat_interleave(groups, 0)[:, None]

    def attend(self, layer: int, heads: Tensor) -> Tensor:
        """Put the keys and values of ``heads`` [rows, heads + 2 groups, width] into their place; what the queries
        find, [rows, heads x width]."""
        shape, stored = self._shape, self._held[layer]
        new = heads[:, shape.heads :].reshape(-1, shape.width)
        stored.view(-1, shape.width).index_copy_(0, self._next, new)
        k, v = stored[:, :, : self.longest].unbind()
        q = heads[:, : shape.heads].reshape(len(k), -1, shape.width)
        scores = torch.baddbmm(self._mask, q, k.mT, alpha=shape.width**-0.5)
        if not self._stem:
            return torch.bmm(torch.softmax(scores, -1), v).view(len(heads), -1)
        stem_k, stem_v = self._stem[layer][0].split(shape.groups)
        first = self._by_row(torch.bmm(self._by_group(q), stem_k.mT).mul_(shape.width**-0.5))
        shares = torch.softmax(torch.cat([first, scores], -1), -1)
        on_stem, behind = shares.split([self.stem_length, self.longest], -1)
        attended = torch.bmm(behind, v).add_(self._by_row(torch.bmm(self._by_group(on_stem), stem_v)))
        return attended.view(len(heads), -1)

    def _by_group(self, each: Tensor) -> Tensor:
        """[rows x groups, heads of a group, n] as [groups, rows x heads of a group, n]."""
        groups = self._shape.groups
        return each.view(-1, groups, *each.shape[1:]).transpose(0, 1).reshape(groups, -1, each.shape[-1])

    def _by_row(self, each: Tensor) -> Tensor:
        """The reverse of ``_by_group``."""
        groups, rows = self._shape.groups, len(self.lengths)
        return each.view(groups, rows, -1, each.shape[-1]).transpose(0, 1).reshape(rows * groups, -1, each.shape[-1])

    def keep(self, places: Tensor) -> None:
        """Hold on to these rows only."""
        rows, groups = len(self.lengths), self._shape.groups
        self._change(lambda _, tensor: tensor.view(2, rows, groups, *tensor.shape[2:])[:, places].flatten(1, 2))
        self._hidden, self.lengths = self._hidden[places], self.lengths[places]
        self.longest = int(self.lengths.max()) if len(places) else 0

    def share(self, length: int) -> Sequence[Tensor]:
        """Keep the first ``length`` tokens, which are those of all rows, once from now on; returns the ``stem``."""
        rows, groups = len(self.lengths), self._shape.groups
        self._stem = [
            tensor.view(2, rows, groups, *tensor.shape[2:])[:, 0, :, :length].flatten(0, 1)[None].clone()
            for tensor in self._held
        ]
        self._change(lambda _, tensor: tensor[:, :, length:].contiguous())
        self.stem_length, self._room = length, self._room - length
        self.lengths, self.longest = self.lengths - length, self.longest - length
        self._hide()
        return self._stem

    def row(self, index: int) -> list[Tensor]:
        """Keys and values [2 groups, tokens, width] a layer of the row at ``index``."""
        rows, groups, length = len(self.lengths), self._shape.groups, int(self.lengths[index])
        return [
            tensor.view(2, rows, groups, *tensor.shape[2:])[:, index, :, :length].flatten(0, 1) for tensor in self._held
        ]

    def join(self, other: "Cache") -> "Cache":
        """This, with the rows of ``other`` behind its own."""
        room = max(self._room, other._room)

        def both(layer: int, tensor: Tensor) -> Tensor:
            pair = (tensor, other._held[layer])
            return torch.cat([pad(each, (0, 0, 0, room - each.shape[2])) for each in pair], 1)

        self._change(both)
        self._room, self.lengths = room, torch.cat([self.lengths, other.lengths])
        self.longest = max(self.longest, other.longest)
        self._hide()
        return self

    def _widen(self) -> None:
        more = self.longest + ROOM - self._room
        self._change(lambda _, tensor: pad(tensor, (0, 0, 0, more)))
        self._room += more
        self._hide()

    def _change(self, change: Callable[[int, Tensor], Tensor]) -> None:
        """Put another tensor in the place of each, one at a time: two of all would be the most memory there is."""
        for layer, tensor in enumerate(self._held):
            self._held[layer] = change(layer, tensor)

    def _hide(self) -> None:
        """Nothing is seen of what lies beyond a row's tokens."""
        beyond = torch.arange(self._room, device=self.lengths.device) >= self.lengths[:, None]
        self._hidden = torch.zeros(beyond.shape, device=beyond.device).masked_fill_(beyond, -torch.inf)


def write(weights: Weights, rows: Sequence[Row], stops: Collection[int], prefixes: Prefixes | None = None) -> None:
    """Decode ``rows`` to their ends: one of ``stops``, or as many tokens as they have room for. With ``prefixes``
    nothing is read twice that was read or written before, which rounds otherwise, and no more are written at once than
    ``turns_at_once`` says."""
    for part in alike(sorted(rows, key=lambda row: len(row.written.prompt))):
        for _ in writing(weights, list(part), stops, prefixes):
            pass


def alike(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Rows in parts whose prompts, in order of length, are not much longer than the first: a row costs what the longest
    beside it does."""
    start = 0
    for index, row in enumerate(rows):
        if not _alike(len(rows[start].written.prompt), len(row.written.prompt), 2):
            yield rows[start:index]
            start = index
    yield rows[start:]


def _alike(shortest: int, longest: int, times: int) -> bool:
    return longest <= times * shortest + APART


def writing(
    weights: Weights, waiting: list[Row], stops: Collection[int], prefixes: Prefixes | None = None
) -> Iterator[None]:
    """Decode rows of ``waiting``, each taken out of it, by one token a turn of the iterator; rows that end make room
    for others, also for those that are put into it meanwhile. Ends with the rows that can be written beside each other:
    what is left then has to begin anew."""
    admission = Admission(weights, waiting, prefixes)
    rows, device = admission.admitted([], waiting), str(weights.embed.device)
    batch = Batch(rows, stops, device)
    cache, states = read(weights, _prompts(rows), prefixes, admission.stem)
    while True:
        before = batch.places
        chosen, alive = batch.take(weights.head(states))
        if prefixes is not None:
            _keep(prefixes, cache, before, alive)
        fresh = admission.admitted(batch.rows, waiting)
        if not alive and not fresh:
            return
        if len(alive) < (1.0 if fresh else CROWDED) * len(batch):
            places = torch.tensor(alive, dtype=torch.long, device=chosen.device)
            batch.keep(places)
            cache.keep(places)
            chosen = chosen[places]
        if alive:
            states = step(weights, chosen, cache)
        if fresh:
            admission.share(cache, [*batch.rows, *fresh])
            others, ends = read(weights, _prompts(fresh), prefixes, admission.stem)
            batch = Batch([*batch.rows, *fresh], stops, device)
            cache, states = (cache.join(others), torch.cat([states, ends])) if alive else (others, ends)
        yield


class Admission:
    """Which of the rows that wait are written beside others: they begin with the same ``stem``, have prompts of like
    lengths, and with ``prefixes`` are no more than ``turns_at_once`` says."""

    def __init__(self, weights: Weights, waiting: Sequence[Row], prefixes: Prefixes | None) -> None:
        """For the one that waits longest, the first, and those that fit beside it. ``stem``: keys and values of what
        they all begin with."""
        self._numbers = 2 * weights.shape.groups * weights.shape.width * weights.shape.layers
        self._bounded, self._beginning = False, list[int]()
        self.stem: Sequence[Tensor] = []
        if prefixes is not None:
            prompts = _prompts(self._fitting([], waiting))
            self.stem = _beginning(weights, [tuple(prompt) for prompt in prompts], prefixes)
            self._bounded, self._beginning = True, prompts[0][: length_of(self.stem)]

    def admitted(self, beside: Sequence[Row], waiting: list[Row]) -> list[Row]:
        """Take rows out of ``waiting``; none while there are few of them, since all that is kept is copied then, and
        none before the one that waits longest."""
        rows = self._fitting(beside, waiting) if waiting else []
        if len(rows) < (1 - CROWDED) * len(beside) or (rows and rows[0] is not waiting[0]):
            return []
        taken = set(map(id, rows))
        waiting[:] = [row for row in waiting if id(row) not in taken]
        return rows

    def share(self, cache: Cache, rows: Sequence[Row]) -> None:
        """What ``rows`` begin with becomes their stem, where those that came first were too few to have one."""
        length = 0 if self.stem or not self._bounded else _common([tuple(prompt) for prompt in _prompts(rows)])
        if length and len(cache.lengths):
            self.stem, self._beginning = cache.share(length), rows[0].written.prompt[:length]

    def _fitting(self, beside: Sequence[Row], waiting: Sequence[Row]) -> list[Row]:
        first = beside or waiting[:1]
        shortest, longest = (pick(len(row.written.prompt) for row in first) for pick in (min, max))
        room, rows = max(map(_room, first)), list[Row]()
        for row in waiting:
            prompt, room = row.written.prompt, max(room, _room(row))
            if self._bounded and len(beside) + len(rows) >= turns_at_once(self._numbers, room - length_of(self.stem)):
                break
            least, most = min(shortest, len(prompt)), max(longest, len(prompt))
            if _alike(least, most, JOINING) and prompt[: len(self._beginning)] == self._beginning:
                rows.append(row)
                shortest, longest = least, most
        return rows


def _room(row: Row) -> int:
    """Tokens of a prompt and of all that may be written behind it."""
    return len(row.written.prompt) + len(row.written.ids) + row.left


def _keep(prefixes: Prefixes, cache: Cache, rows: Sequence[Row | None], alive: Sequence[int]) -> None:
    """Keep what was computed of the ``rows`` that ended, with all they wrote but the last token, which nobody read."""
    for index in {index for index, row in enumerate(rows) if row is not None}.difference(alive):
        if row := rows[index]:
            prefixes.keep([*row.written.prompt, *row.written.ids[:-1]], cache.row(index), cache.stem_length)


def _prompts(rows: Sequence[Row]) -> list[list[int]]:
    return [row.written.prompt for row in rows]


def read(
    weights: Weights, prompts: Sequence[Sequence[int]], prefixes: Prefixes | None = None, stem: Sequence[Tensor] = ()
) -> tuple[Cache, Tensor]:
    """What is kept of ``prompts``, and what the head reads at their ends, [rows, hidden]; ``prefixes`` as for
    ``write``, ``stem`` what is kept of their common beginning, where it is not to be kept for each."""
    unique = list(dict.fromkeys(map(tuple, prompts)))
    rows: dict[tuple[int, ...], list[int]] = {}
    for row, prompt in enumerate(prompts):
        rows.setdefault(tuple(prompt), []).append(row)
    device = weights.embed.device
    lengths, shared = torch.tensor([len(prompt) for prompt in prompts], device=device), length_of(stem)
    cache, ends = None, dict[int, Tensor]()
    for parts in _passes(_behind_prefixes(weights, unique, prefixes)):
        layers, last = _read(weights, parts)
        cache = cache or Cache(weights.shape, lengths - shared, layers[0].dtype, stem)
        first = 0
        for before, texts in parts:
            which = [first + index for index, text in enumerate(texts) for _ in rows[text]]
            places = torch.tensor([row for text in texts for row in rows[text]], device=device)
            longest = max(map(len, texts)) - before.length
            for number, layer in enumerate(layers):
                kept = before.layers[number : number + 1]
                cache.put(number, places, _behind(shared, kept, layer[which, :, :longest]))
            for index, text in enumerate(texts, first):
                ends |= dict.fromkeys(rows[text], last[index])
                if prefixes is not None:
                    new = len(text) - before.length
                    prefixes.keep(text, [layer[index, :, :new] for layer in layers], before.length)
            first += len(texts)
        del layers, layer  # before those of the next pass are made
    assert cache is not None  # noqa: S101 - there is a prompt
    return cache, torch.stack([ends[row] for row in range(len(prompts))])


Part = tuple[Prefix, list[tuple[int, ...]]]
"""Texts, and what is kept of a beginning of all of them."""


def _passes(parts: Iterator[Part]) -> Iterator[list[Part]]:
    """Parts that are read at once, larger ones divided: of ``READ`` tokens with padding, behind as many kept ones."""
    beside, rows, longest, kept = list[Part](), 0, 0, 0
    for before, texts in parts:
        size = max(map(len, texts)) - before.length
        few = max(1, READ // size)
        for at in range(0, len(texts), few):
            some = texts[at : at + few]
            if beside and ((rows + len(some)) * max(longest, size) > READ or kept + before.length > READ):
                yield beside
                beside, rows, longest, kept = [], 0, 0, 0
            beside.append((Prefix(len(some), before.layers), some))
            rows, longest, kept = rows + len(some), max(longest, size), kept + before.length
    yield beside


def _behind(shared: int, prefix: Sequence[Tensor], layer: Tensor) -> Tensor:
    """[rows, 2 groups, T, width] from the token ``shared`` on, of a ``prefix`` [1, 2 groups, T, width], where there is
    one, and ``layer`` after it."""
    before = length_of(prefix)
    if before <= shared:
        return layer[:, :, shared - before :]
    return torch.cat([prefix[0][:, :, shared:].expand(len(layer), -1, -1, -1), layer], 2)


def _behind_prefixes(weights: Weights, texts: Sequence[tuple[int, ...]], prefixes: Prefixes | None) -> Iterator[Part]:
    """``texts`` by what is kept of their beginnings. What all begin with is read first, and kept."""
    if prefixes is None:
        yield Prefix(len(texts), ()), list(texts)
        return
    _beginning(weights, texts, prefixes)
    groups: dict[tuple[KeptBlock, ...], list[tuple[int, ...]]] = {}
    for text in texts:
        groups.setdefault(prefixes.longest(text), []).append(text)
    for chain, members in groups.items():
        yield Prefix(len(members), joined(chain)), members


def _beginning(weights: Weights, texts: Sequence[tuple[int, ...]], prefixes: Prefixes) -> list[Tensor]:
    """Keys and values [1, 2 groups, T, width] of each layer of what several ``texts`` begin with, which are kept."""
    shared = _common(texts)
    if not shared:
        return []
    beginning = texts[0][:shared]
    known = joined(prefixes.longest((*beginning, 0)))
    if (before := length_of(known)) == shared:
        return known
    layers, _ = _read(weights, [(Prefix(1, known), [beginning])])
    prefixes.keep(beginning, [layer[0] for layer in layers], before)
    return [_behind(0, known[number : number + 1], layer) for number, layer in enumerate(layers)]


def _common(prompts: Sequence[tuple[int, ...]]) -> int:
    """How many tokens in whole blocks all ``prompts`` begin with, so that each has another one behind."""
    first, last = min(prompts), max(prompts)
    differs = next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    length = min(differs, min(map(len, prompts)) - 1)
    return length // BLOCK * BLOCK if len(prompts) > 1 else 0


def _read(weights: Weights, parts: Sequence[Part]) -> tuple[list[Tensor], Tensor]:
    """What is new of the texts of ``parts``, one after the other: (keys and values [rows, 2 groups, T, width] of each
    layer, what the head reads at the ends [rows, hidden])."""
    device, kept = weights.embed.device, list[Tensor]()
    prompts = [text[before.length :] for before, texts in parts for text in texts]
    longest = max(map(len, prompts))
    ids = torch.tensor([[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts], device=device)
    lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
    text = packed(ids, (torch.arange(longest, device=device) < lengths[:, None]).long())
    states = hidden(weights, text, kept, prefixes=[before for before, _ in parts])
    return kept, states[lengths.cumsum(0) - 1]


def step(weights: Weights, ids: Tensor, cache: Cache) -> Tensor:
    """Go on by one token a row, ``ids`` [rows]: what the head reads then, [rows, hidden]."""
    shape = weights.shape
    before = cache.stem_length
    x, by = weights.embedded(ids), turns(shape, before + cache.longest + 1, ids.device)[before + cache.lengths]
    cache.grow()
    for number, layer in enumerate(weights.layers):
        x = gone_on(shape, layer, x, cache.attend(number, heads_of(shape, layer, x, by)))
    return normed(x, shape.eps)
