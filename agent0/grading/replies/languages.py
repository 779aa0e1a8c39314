"""Words for "answer" in other languages, as the English one. Nothing else is translated."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

_SCRIPTS = r"(?:答案|答え|解答|答|정답|답)"
_scripts = re.compile(
    rf"(?:(?:所以|因此|最终|最終|最后|正确|正解|故|の|最後の)*)(?<![回解作]){_SCRIPTS}(?:选项|選項)?\s*(?:是|为|為|應為|应为|は|는|은|이|選|选)?\s*[:：]?\s*"
    r"(?=[\w$(\\*`−\-\u300c])(?![\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af])"
)
_WORDS = (
    r"antwort|endergebnis|réponse|reponse|respuesta|risposta|resposta|ответ|відповідь|odpowiedź|antwoord|svar(?:et)?|vastaus|cevap"
    r"|jawaban(?:nya)?|đáp án|răspuns(?:ul)?|válasz|odpověď|απάντηση"
)
_SAYS = r"ist|lautet|est|es|è|é|este|är|er|is|to|jest|adalah|là|on|:|：|=|—|–"
_words = re.compile(
    rf"(?<!\w)(?:(?:die|la|el|il|a|o|de|het|den|so|also|daher|donc|así|quindi)\s+){{0,4}}(?:(?:endgültige|finale?|richtige|correcta|correcte"
    rf"|corretta|definitiva)\s+)?(?:{_WORDS})(?:\s+(?:finale?|correcta|correcte|corretta|definitiva|final))?[*_]*\s*(?:(?:{_SAYS})[*_]*\s*)+(?:(?:donc|also|daher|somit|quindi|dunque|entonces|portanto|logo)\s+)?",
    re.IGNORECASE,
)


def in_english(text: str) -> str:
    """Return ``text`` with "Answer:" for what another language says in its place."""
    text = _words.sub("Answer: ", text)
    return text if text.isascii() else _scripts.sub("Answer: ", text)
