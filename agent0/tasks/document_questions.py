"""Questions that a teacher writes about a passage of a document (SPICE, arXiv 2510.24684): how its reply is read, and
what must hold of question, answer and quotation. Nothing of this needs a model, so a passage that gives orders can at
most waste its own question."""

import re
import unicodedata
from collections.abc import Mapping

from agent0.events.values import DOCUMENTS, Passage, SourceRow, Task
from agent0.grading.answer_types import VALUE, grade_as, kind_of, plain
from agent0.tasks.decontamination import EVERYDAY
from agent0.turns.calls.spellings import read_object
from agent0.turns.marks import own_turn
from agent0.turns.thoughts import split_thoughts

LONGEST_ANSWER, MOST_WORDS = 80, 8
"""Characters and words of an answer: a number, a name, a short span."""
LONGEST_QUESTION, LONGEST_QUOTATION = 500, 600
"""Characters of a question, and of the sentence that holds its answer."""
STEM = 5
"""Characters by which two words are of one stem."""
FIELDS = ("question", "answer", "sentence")
ALIASES = {"quotation": "sentence", "quote": "sentence"}
"""What a field may be called as well -> what it is."""
_label = re.compile(rf"^[\W\d]*({'|'.join((*FIELDS, *ALIASES))})\W*:[*_]*", re.I | re.M)
_number = re.compile(r"(?<!\w)[-+]?\d[\d,.]*(?<![,.])")
_marks = str.maketrans("\u2018\u2019\u201c\u201d\u2013\u2014", "''\"\"--", "`*")
_passage = re.compile(
    r"\b(passage|excerpt|(this|that|the|above|following|given|provided) "
    r"(text|document|paragraph|section|sentence|page)|(this|these|above|following|given|provided) "
    r"(contexts?|codes?|examples?|statements?|functions?))\b",
    re.I,
)
"""Names a passage, which a student that reads the question alone does not have."""


def read_document_question(reply: str, passage: Passage, text: str, *, shown: bool) -> tuple[Task | None, Passage, str]:
    """Read the question that ``reply`` asks about ``passage``, whose characters are ``text``, and check it by them.

    ``shown``: the student reads the passage, so that the question may speak of it. Returns the task, the passage with
    its quotation, and "", or None, the passage, and what is wrong.
    """
    fields = _fields(reply)
    problem = fields if isinstance(fields, str) else _problem(**fields, text=text, shown=shown)
    if isinstance(fields, str) or problem:
        return None, passage, problem
    question, quotation = fields["question"], fields["sentence"]
    row = SourceRow(
        id=f"{passage.document}:{passage.start}-{passage.end}",
        answer=fields["answer"],
        passage=text if shown else "",
    )
    task = Task(
        question=question,
        domain=DOCUMENTS,
        family=DOCUMENTS,
        level=1,
        canonical=f"{DOCUMENTS} {normal_text(question)}",
        row=row,
    )
    return task, passage.model_copy(update={"quotation": quotation}), ""


def in_tags(text: str) -> str:
    """``text`` for a prompt: it cannot end the passage that it is in."""
    return re.sub(r"<(?=/?\s*passage)", "< ", text, flags=re.I)


def normal_text(text: str) -> str:
    """One spelling of a text: case, spaces, forms of letters, quotes, emphasis and code marks do not count."""
    return " ".join(unicodedata.normalize("NFKC", plain(text)).translate(_marks).casefold().split())


def _fields(reply: str) -> dict[str, str] | str:
    """Question, answer and sentence, as an object or under labels; of several questions the first. Or what is wrong."""
    thoughts = split_thoughts(own_turn(reply))
    if thoughts.unclosed:
        return "the reply ends inside its thoughts"
    body = thoughts.visible
    start = body.find("{")
    value, _ = (read_object(body, start) if start >= 0 else None) or (None, 0)
    pairs = [*value.items()] if isinstance(value, Mapping) else _labelled(body)
    fields: dict[str, str] = {}
    for name, text in pairs:
        label = str(name).lower()
        fields.setdefault(ALIASES.get(label, label), " ".join(str(text).split()).strip(' "*'))
    if missing := next((name for name in FIELDS if not fields.get(name)), ""):
        return f"no {missing}"
    return {name: fields[name] for name in FIELDS}


def _labelled(body: str) -> list[tuple[str, str]]:
    """Name and text of each field under a label; a text ends at the next label or a blank line."""
    parts = _label.split(body)
    texts = (re.split(r"\n[ \t]*\n", text.strip())[0] for text in parts[2::2])
    return [*zip(parts[1::2], texts, strict=True)]


def _problem(question: str, answer: str, sentence: str, text: str, *, shown: bool) -> str:
    """What is wrong with a question about ``text``; empty where nothing is."""
    if unfit := _unfit(question, answer, sentence):
        return unfit
    if _bare(sentence) not in normal_text(text):
        return "the sentence does not stand in the passage"
    if not _holds(sentence, answer):
        return "the answer does not stand in the sentence"
    if _holds(question, answer):
        return "the question contains its answer"
    if not _is_about(question, text):
        return "the question is about something else than the passage"
    if not shown and (spoken := _passage.search(question)):
        return f"the question speaks of {spoken[0].lower()!r}, which the student does not read"
    return ""


def _unfit(question: str, answer: str, sentence: str) -> str:
    if len(answer) > LONGEST_ANSWER or len(answer.split()) > MOST_WORDS:
        return f"the answer is longer than {MOST_WORDS} words"
    if len(question) > LONGEST_QUESTION or len(sentence) > LONGEST_QUOTATION:
        return f"a question of {LONGEST_QUESTION} characters and a sentence of {LONGEST_QUOTATION} are the longest"
    if any(unicodedata.category(sign) in ("Cc", "Cs", "Co") for sign in question + answer + sentence):
        return "control characters"
    return "the sentence is no more than the answer" if len(sentence.split()) <= len(answer.split()) else ""


def _holds(text: str, answer: str) -> bool:
    """Whether ``answer`` stands in ``text``, word by word or as an equal number."""
    if re.search(rf"(?<!\w){re.escape(_bare(answer))}(?!\w)", normal_text(text)):
        return True
    numbers = _number.findall(text) if kind_of(answer) == VALUE else []
    return any(grade_as(VALUE, number, answer).correct is True for number in numbers[:50])


def _is_about(question: str, text: str) -> bool:
    """Whether half of the words of ``question`` that say something begin as words of ``text`` do."""
    own, others = (
        {word[:STEM] for word in re.findall(r"\w+", normal_text(each)) if word not in EVERYDAY}
        for each in (question, text)
    )
    return bool(own) and 2 * len(own & others) >= len(own)


def _bare(text: str) -> str:
    return normal_text(text).strip(" .,;:!?\"'\u2026")
