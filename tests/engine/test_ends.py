"""Where the text of each sampled token ends, for tokenizers whose tokens are characters and such that cut them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from agent0.infra.engine.chat_template import Chat
from tests.engine.asking import QWEN

LETTERS = sorted(pre_tokenizers.ByteLevel.alphabet())
END = len(LETTERS)


@pytest.fixture(scope="module")
def bytes_chat() -> Chat:
    """One token a byte, as byte-level tokenizers cut a character they do not know."""
    inner = Tokenizer(models.BPE(vocab={letter: n for n, letter in enumerate(LETTERS)}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|im_end|>", pad_token="<|im_end|>")
    made.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    made.chat_template = QWEN
    return Chat(made)


@settings(max_examples=25, deadline=None)
@given(text=st.text(st.sampled_from("ab1 {}é😀") | st.characters(codec="utf-8"), max_size=12), cut=st.integers(0, 9))
def test_ends_rise_to_the_whole_text(bytes_chat: Chat, text: str, cut: int) -> None:
    ids = [
        LETTERS.index(letter) for piece, _ in pre_tokenizers.ByteLevel(False).pre_tokenize_str(text) for letter in piece
    ]
    ids = ids[: len(ids) - cut] if cut < len(ids) else ids
    for closed in (ids, [*ids, bytes_chat.stop]):
        whole, ends = bytes_chat.decode(closed), bytes_chat.ends(closed, 3)
        assert len(ends) == len(closed) and ends == sorted(ends)
        assert all(3 <= end <= 3 + len(whole) for end in ends)
        assert not closed or ends[-1] == 3 + len(whole)
        for n, end in enumerate(ends):
            if bytes_chat.decode(closed[: n + 1]).isascii():
                assert bytes_chat.decode(closed[: n + 1]) == whole[: end - 3]


def test_the_small_models_tokens_spell_their_text(chat: Chat) -> None:
    text = '<tool_call>\n{"name": "python", "arguments": {"code": "print(12+34)"}}\n</tool_call>'
    ids = [*chat._ids(chat._markup, text), chat.stop]
    ends = chat.ends(ids)
    assert [text[a:b] for a, b in zip([0, *ends], ends, strict=False)] == [*(chat.decode([i]) for i in ids[:-1]), ""]
