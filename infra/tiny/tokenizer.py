"""The built-in model's own tokenizer: byte-level BPE over the words of the task families. Digits go in pairs,
capitals of strings one by one; the markup of a tool call is a handful of single tokens, so that turns are short."""

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from agent0.infra.tiny.examples import TAUGHT
from agent0.tasks.families import families

END, PAD = "<|im_end|>", "<|endoftext|>"
CONTROL = (
    PAD,
    "<|im_start|>",
    END,
    "<|im_start|>system\n",
    "<|im_start|>user\n",
    "\n<|im_start|>user\n",
    "\n<|im_start|>assistant\n",
    "\n<|im_start|>user\n<tool_response>\n",
    "\n</tool_response>",
)
MARKUP = (
    "<tool_call>",
    "</tool_call>",
    '\n{"name": "python", "arguments": {"code": "',
    ')"}}\n</tool_call>',
    '\n{"name": "sympy", "arguments": {"operation": "solve", "expression": "',
    '"}}\n</tool_call>',
    "\\boxed{",
    "print(",
    "print('",
    "d=dict(",
    ");print(sorted(d,key=d.get)",
    "'[::-1]",
    "[::-1]",
    "[-1]",
    "[-2]",
    "print(*sorted('",
    "'),sep=''",
    "'.count('",
    "'.replace('",
    "','')",
    "sum(i*i for i in ",
    "len(set(",
    "max(v:=",
    ")-min(v)",
)
TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message.role == 'tool' -%}"
    "{%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}{{ '<|im_start|>user' }}{%- endif -%}"
    "{{ '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}"
    "{%- if loop.last or messages[loop.index0 + 1].role != 'tool' -%}{{ '<|im_end|>\\n' }}{%- endif -%}"
    "{%- else -%}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}"
)
BOX = ("\\boxed{",)
PAIRS = r" ?[A-Z]?[a-z]+|[A-Z]|[0-9]{1,2}|, |[^\sA-Za-z0-9]|\s"
"""How texts are cut before pieces are merged: words, and digits in pairs."""
SINGLES = PAIRS.replace("{1,2}", "")
"""The same with every digit for itself."""
SAMPLES = 40


def make_tokenizer(
    seed: int,
    taught: Sequence[str] = TAUGHT,
    markup: Sequence[str] = MARKUP,
    pieces: str = PAIRS,
    levels: int = 0,
    texts: Iterable[str] = (),
) -> Any:
    """A PreTrainedTokenizerFast, trained on sampled questions and calls of the families ``taught``, up to ``levels``
    (0: all), and on ``texts``, with ``markup`` as single tokens. Same seed, same tokenizer."""
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pieces), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=2000, initial_alphabet=sorted(alphabet), show_progress=False)
    raw.train_from_iterator([*_corpus(seed, taught, levels), *texts], trainer)
    raw.add_tokens([AddedToken(text, special=True, normalized=False) for text in CONTROL])
    raw.add_tokens([AddedToken(text, special=False, normalized=False) for text in markup])
    factory: Any = PreTrainedTokenizerFast
    return factory(tokenizer_object=raw, eos_token=END, pad_token=PAD, chat_template=TEMPLATE)


def _corpus(seed: int, taught: Sequence[str], levels: int) -> list[str]:
    rng = random.Random(f"tokenizer {seed}")
    lines = [str(n) for n in range(10, 100)] * SAMPLES + [f"0{n}" for n in range(10)] * SAMPLES
    for entry in (families()[name] for name in taught):
        for level in range(1, (levels or entry.levels) + 1):
            lines.append(f"Ask {entry.domain} {entry.name} {level}")
            for _ in range(SAMPLES):
                params = entry.sample(level, rng)
                called = () if entry.check else entry.call(params)[1].values()
                lines += [entry.render(params, rng), entry.solve(params), *map(str, called)]
    return lines


def lengths(folder: Path, texts: Sequence[str]) -> list[int]:
    """Tokens of each of ``texts`` by the tokenizer of the model in ``folder``."""
    return [
        len(encoding.ids) for encoding in Tokenizer.from_file(str(folder / "tokenizer.json")).encode_batch(list(texts))
    ]
