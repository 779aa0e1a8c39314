"""Whether a writer takes back what a reply gave as its answer: behind it, it is called wrong, or another value stands
in its place after a word of correction."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

from agent0.chat_format import boxes

LONGEST = 400
"""Characters behind an answer in which it is taken back, or not at all."""
_joint = r"[\s$,.;:!?)\\\]*_—–。，、！-]{0,8}"
_wrong = re.compile(
    rf"{_joint}(?:(?:was|is) (?:my|the|an?) (?:first|initial|earlier|old|tentative)[^.\n]{{0,40}}[,;] )?"
    r"(?:but |and |however,? )?(?:(?:that|this|it|which) )?(?:is|was|would be) (?:\w+ )?(?:wrong|incorrect|false"
    r"|a mistake|mistaken|not (?:correct|right|the answer|it|true))\b[^.\n]*(?:\.\s|\n|\Z|\.\Z)"
    rf"|{_joint}(?:(?:这|這|那|これは|それは|이것은|그것은)?(?:是)?(?:错|錯|不对|不對|間違|違い|틀)|(?:bu )?yanlış"
    rf"|das (?:ist|war)"
    r" falsch|c['’]est faux|es[ot]o (?:es|está) (?:incorrecto|mal)|это не(?:верно|правильно))[^.。，,\n]*(?:[.。，,\n]"
    r"|\Z)",
    re.IGNORECASE,
)
_correction = re.compile(
    rf"{_joint}(?:but |oh,? |hm+,? |ah,? |and )?(?:wait|no|oops|sorry|actually|correction|hold on|hm+|my mistake"
    r"|on second thought|i made an? (?:mistake|error)|i was wrong|let me correct|不|不对|不對|等等|更正|抱歉|いや"
    r"|いいえ|待って|訂正|아니요?|잠깐만?|정정|hayır|bekle|pardon|düzeltme|nein|moment|halt|korrektur|non|attendez"
    r"|espera|perdón|corrección|нет|стоп|исправлю)\b(?P<rest>.{0,240})",
    re.IGNORECASE | re.DOTALL,
)
_other = re.compile(
    r"(?:answer(?: is| should be| must be|:)|(?:答案|答え|正解)(?:是|应为|應為|は)|(?:정답|답)은|cevap|(?:antwort"
    r"|réponse|respuesta|ответ|es|est|ist)(?: ist| est| es| -| —|:)?(?= )|应该是|應該是|it(?:['’]s| is| should be"
    r"| must be| has to be)|should (?:be|read)|must be|that makes|correction:|(?:actually|\bno"
    r"|wait)[,:]? (?=[-\d$\\(]))(?: actually| really)?[\s:$*]*(?P<value>(?-i:\(?[A-J]\)?)(?![A-Za-z])"
    r"|[-−]?\\?[\w\\{}/.,^()-]*[\d}][\w\\{}/.,^()-]*)",
    re.IGNORECASE,
)


def taken_back(text: str, end: int, value: str) -> int:
    """Return where ``text`` goes on once ``value``, which ends at ``end``, is taken back; 0 where it is not."""
    behind = text[end : end + LONGEST]
    if match := _wrong.match(behind):
        return end + match.end()
    correction = _correction.match(behind)
    other = _other.search(correction[0]) if correction else None
    return end + behind.index(other[0]) if other and _bare(other["value"]) != _bare(value) else 0


def box_taken_back(text: str) -> int:
    """Return where ``text`` goes on once its last closed box is taken back; 0 where it is not."""
    last = next((box for box in reversed(boxes(text)) if box.closed), None)
    return taken_back(text, last.end + 1, text[last.inside : last.end]) if last else 0


def _bare(value: str) -> str:
    return re.sub(r"[\s$(){}]|\\[,;! ]", "", value).rstrip(".,").replace("−", "-").lower()
