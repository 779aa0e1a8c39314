"""A prompt that somebody wrote: its own text in the place of a style's name, and what such a text needs."""

import re

from agent0.errors import ConfigError

MARK = re.compile(r"^@(system|user|assistant|tool)\n", re.MULTILINE)
"""A line that begins a turn."""
PLACEHOLDER = re.compile(r"\{(domain|family|topic|level|question|tools|examples|answer|passage|reference)\}")
LONGEST = 32_768
"""Bytes of a prompt: it is part of settings, which are in events."""
_QUESTION = "{question}"
_OTHERS = ("family", "topic", "level", "tools", "examples", "passage", "reference")
"""Placeholders of other roles' prompts; ``{answer}`` is text, as in a box."""


def is_text(style: str) -> bool:
    """Whether ``style`` is a prompt's own text, and no style's name."""
    return _QUESTION in style


def turns_of(text: str) -> list[tuple[str, str]]:
    """Split a prompt's text into its turns, (role, text with placeholders); a text without marks is one user turn."""
    _, *parts = MARK.split(text if MARK.match(text) else f"@user\n{text}")
    return [(role, turn.removesuffix("\n")) for role, turn in zip(parts[::2], parts[1::2], strict=True)]


def student_text(text: str, name: str) -> str:
    """Return ``text`` as a student's prompt, where it can be; ``name`` stands in errors.

    Raises:
        ConfigError: it is empty or too long, lacks ``{question}`` in its last turn, which the user's must be, or has
            placeholders that a student's prompt is not filled with.
    """
    size = len(text.encode(errors="surrogatepass"))
    if not text.strip():
        raise ConfigError(f"{name} is empty.", "A prompt has text and {question}.", "See: agent0 prompt show NAME")
    if size > LONGEST:
        raise ConfigError(
            f"{name} is too long.", f"It has {size:,} bytes, and {LONGEST:,} are the most.", "Shorten it."
        )
    role, last = turns_of(text)[-1]
    if role != "user" or _QUESTION not in last:
        why = "Its last turn is the user's and holds the question."
        raise ConfigError(f"{name} has no {_QUESTION} in its last turn.", why, f"Write {_QUESTION} where it belongs.")
    if unfilled := [placeholder for placeholder in PLACEHOLDER.findall(text) if placeholder in _OTHERS]:
        why = "A student's prompt is filled with {question} and {domain}."
        raise ConfigError(f"{name} has a placeholder {{{unfilled[0]}}}.", why, "Write it otherwise.")
    return text


def instruction_of(text: str) -> str:
    """Return the instruction of a prompt: its first turn where that is the system's, else empty."""
    role, first = turns_of(text)[0]
    return first if role == "system" else ""


def with_instruction(text: str, instruction: str) -> str:
    """Return the prompt ``text`` with another instruction; examples and the question's turn stay.

    Raises:
        ConfigError: with this one it is no student's prompt, or would have other turns.
    """
    turns = turns_of(text)
    others = turns[1:] if turns[0][0] == "system" else turns
    changed = "".join(f"@{role}\n{turn}\n" for role, turn in [("system", instruction.strip()), *others])
    if not instruction.strip() or turns_of(changed) != [("system", instruction.strip()), *others]:
        raise ConfigError("It is no instruction.", "It is empty, or holds lines that begin turns.", "Write another.")
    return student_text(changed, "The prompt")
