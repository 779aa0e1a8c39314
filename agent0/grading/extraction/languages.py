"""Words for "answer" in other languages, as the English one. Nothing else is translated."""

# ruff: noqa: RUF001 (signs and dashes as they are written)
import re

_SCRIPTS = r"(?:答案|答え|解答|答|結果|结果|정답|답|결과|الجواب|الإجابة|الاجابة|الناتج|उत्तर|คำตอบ(?:คือ)?|התשובה|תשובה)"
_scripts = re.compile(
    rf"(?:(?:所以|因此|最终|最終|最后|正确|正解|故|の|最後の|よって、?|따라서|그러므로)\s*)*(?<![回解作])(?<!w){_SCRIPTS}(?:选项|選項)?"
    r"\s*(?:是|为|為|應為|应为|は|는|은|이|選|选|هو|هي|היא|הוא)?\s*[:：]?\s*"
    r"(?=[\w$(\\*`−\-\u300c])(?![\u0590-\u06ff\u0900-\u097f\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af])"
)
_copula = re.compile(
    r"(?<=[A-Za-z0-9$)}%])(?:\s*(?:개|명|원|점|번|마리|시간|장|권|살|대)?\s*(?:입니다|이에요|예요|이다"
    r"|가 됩니다|이 됩니다|になります|となります"
    r"|である|です|だ|है|होगा|ครับ|ค่ะ)"
    r"|['’](?:d[ıiuü]r|t[ıiuü]r))(?=[\s.。!！]|\Z)"
)
"""What says "is" behind a value in Korean, Japanese, Hindi and Turkish."""
_denied_behind = re.compile(
    r"\s*(?:(?:では|じゃ)(?:な|ありませ)\w*|かもしれ\w*|(?:이|가)?\s*아니\w*|(?:이|가)?\s*아닙니다|değil\w*|नहीं)"
)
_denied = re.compile(
    r"(?:不是|不等于|ليس|ไม่ใช่|אינה|איננה)"
    r"|\b(?:niet|inte|nie|nije|ikke|ei ole|não|não é|nem|nu este|không phải|bukan)\b",
    re.IGNORECASE,
)
"""What says that something is not, or only may be, behind it or before it."""
_either = re.compile(r"(?<=[0-9A-J])\s*(?:或|か|또는|\boder|\bou|\beller|\bveya|أو|या|או)\s*(?=[-−]?[0-9A-J])")
_WORDS = (
    r"antwort|endergebnis|réponse|reponse|respuesta|risposta|resposta|ответ|відповідь|odpowiedź|antwoord|svar(?:et)?"
    r"|vastaus|(?:doğru )?cevap|sonuç|ergebnis|résultat|resultado|risultato|resultaat|resultat(?:et)?|wynik"
    r"|результат"
    r"|jawaban(?:nya)?|đáp án|răspuns(?:ul)?|válasz|odpověď|απάντηση"
)
_SAYS = r"равен|равна|равно|ist|lautet|est|es|è|é|este|är|er|is|to|jest|adalah|là|on|:|：|=|—|–"
_words = re.compile(
    rf"(?<!\w)(?:(?:die|la|el|il|a|o|de|het|den|so|also|daher|donc|así|quindi)\s+){{0,4}}(?:(?:endgültige|finale?"
    rf"|richtige|correcta|correcte"
    rf"|corretta|definitiva)\s+)?(?:{_WORDS})(?:\s+(?:finale?|correcta|correcte|corretta|definitiva"
    rf"|final))?[*_]*\s*(?:(?:{_SAYS})[*_]*\s*)+(?:(?:donc|also|daher|somit|quindi|dunque|entonces|portanto"
    rf"|logo)\s+)?",
    re.IGNORECASE,
)


def in_english(text: str) -> str:
    """Return ``text`` with "Answer:" for what another language says in its place."""
    text = _either.sub(" or ", _denied.sub(" not ", _denied_behind.sub(", which is wrong", text)))
    text = _words.sub("Answer: ", text)
    return text if text.isascii() and "'" not in text else _copula.sub("", _scripts.sub("Answer: ", text))
