"""Phrases of eight languages and more by what they mean, as patterns: a claim, a denial, a correction, "the answer is".

Whatever reads a reply in another language reads it by these.
"""

# ruff: noqa: RUF001 (signs and letters as they are written)
WRONG = (
    r"(?:(?:这|這|那|これは|それは|이것은|그것은)?(?:是)?(?:错|錯|不对|不對|間違|違い|틀)|(?:bu )?yanlış"
    r"|das (?:ist|war) falsch|das stimmt nicht|c['’]est faux|es[ot]o (?:es|está) (?:incorrecto|mal)"
    r"|это (?:не(?:верно|правильно| так)|ошибка))"
)
"""What calls an answer wrong, behind it."""
CORRECTION = (
    r"不|不对|不對|等等|更正|抱歉|いや|いいえ|待って|訂正|아니요?|잠깐만?요?|정정|사실은?|hayır|bekle|aslında|pardon|düzeltme"
    r"|nein|moment|warte|halt|korrektur|eigentlich|non|attend(?:s|ez)|en (?:fait|réalité|realidad)|espera|perdón"
    r"|corrección|correção|espere|errei|na verdade|anzi|aspetta|correzione|in realtà"
    r"|すみません|哦|нет|ой|стоп|исправлюсь?|(?:подо|по)(?:жди|годи)(?:те)?|на самом деле|я ошиб(?:ся|лась)"
)
"""What begins a correction, where no letter follows."""
CORRECTION_BEFORE_LETTERS = "其实|实际上|実は|実際は|哦?不,?是"
ANSWER_IS = (
    r"(?:答案|答え|正解)(?:是|应为|應為|は)|应该是|應該是|(?:정답|답)은|cevap|(?:antwort|réponse|respuesta|ответ|es|est|ist"
    r"|равен|равна|равно|должно быть)(?: ist| est| es| -| —|:)?(?= )"
)
"""What stands before the value that corrects another."""
_ANSWERS = (
    r"antwort|endergebnis|réponse|reponse|respuesta|risposta|resposta|ответ|відповідь|odpowiedź|antwoord|svar(?:et)?"
    r"|vastaus|(?:doğru )?cevap|sonuç|ergebnis|lösung|solución|résultat|resultado|risultato|resultaat|resultat(?:et)?"
    r"|wynik|результат|jawaban(?:nya)?|đáp án|răspuns(?:ul)?|válasz|odpověď|απάντηση"
)
_SAYS = r"(?:равен|равна|равно|ist|lautet|est|es|è|é|este|är|er|is|to|jest|adalah|là|on)(?!\w)|:|：|=|—|–"
_FINAL = r"endgültige|finale?|richtige|correct[ae]|corrett[ae]|definitiva|final"
AS_ENGLISH: tuple[tuple[str, str], ...] = (
    (r"\s*(?:(?:では|じゃ)(?:な|ありませ)\w*|かもしれ\w*|(?:이|가)?\s*(?:아니\w*|아닙니다)|değil\w*|ol(?:a|mu)?maz\b|नहीं|と主張\w*"
     r"|(?:라고|다고)\s*주장\w*|olduğunu (?:iddia|düşün|söyl|san)\w*+(?<![ıiuü][mz])|\s+diyor(?:lar)?(?!\w)"
     r"|(?:だ|である)?と言(?:う(?!こと)|いま|った|ってい[るたま])\w*|,? (?:что|но это) не(?:верно|правильно|правда))",
     ", which is wrong"),
    (r"(?i)(?:有人|[他她])们?(?:说|說|认为|認為|声称|聲稱|觉得|主張)[，,：:]?|(?:ある人|誰か)[はが]|누군가(?:는|가)?"
     r"|\b(?:birisi|biri|bazıları|(?<!wir )(?:behaupt|sag|mein|glaub|denk)e?(?:t|n|te|ten),? dass|man sagt(?=,)"
     r"|(?:jemand|manche) (?:behaupte|sag|mein|glaub)\w*,?|(?<!je )(?<!on )(?:pense|dit|croit|affirme|prétend"
     r"|soutient|disent|croient|(?:pens|affirm|prétend)ent) que|on dit que|(?:dice|cree|piensa|afirma|sostiene)n?"
     r" que|(?:(?:утвержда|счита|дума|(?:пред)?полага)(?:ет|ют|ется|л|ла|ли)|говор(?:ит|ят|ила?|или)|сказал[аи]?"
     r"|не(?:верно|правда)|не думаю),? что|если бы(?= (?:\w+ )?ответ))(?!\w)", "Someone claims that "),
    (r"答案(?:不是|[并並]非)[^，,。\n]{1,30}[，,]而?是\s*", "Answer: "),
    (r"(?i)不是|不[等会會可]\w{0,2}[于於是]|[并並][非不]|ليست?|ไม่ใช่|אינה|איננה|\b(?:niet|geen|inte|nie|nije|ikke|ei ole"
     r"|não|nem|nu este|không phải|bukan(?:lah)?|δεν|není)\b", " not "),
    (r"(?<=[0-9A-J])\s*(?:或|か|또는|\boder|\bou|\beller|\bveya|أو|या|או)\s*(?=[-−]?[0-9A-J])", " or "),
    (rf"(?i)(?<!\w)(?:(?:die|la|el|il|a|o|de|het|den|so|also|daher|donc|así|quindi)\s+){{0,4}}(?:(?:{_FINAL})\s+)?"
     rf"(?:{_ANSWERS})(?:\s+(?:{_FINAL}))?[*_]*\s*(?:(?:{_SAYS})[*_]*\s*)+"
     r"(?:(?:donc|also|daher|somit|quindi|dunque|entonces|portanto|logo|alltså|dus|więc|tehát|tedy|deci|maka)\s+)?",
     "Answer: "),
    (r"(?<=Answer: )(?:la|el|il|die|der|a) (?=(?:\W{0,3}[A-J]\b|opci|opz|opç|option|répon|lettera))", ""),
    (r"(?i)(?<!\w)(?:(?:la|l['’]|die|der|a) ?)?(?:opción|opzione|opção|option|réponse|lettera|letra|lettre|вариант) "
     r"(?=\(?(?-i:[A-J])\b)", "option "),
    (r"(option \(?[A-J]\)?) (?:es|est|ist|è|é) (?:la |die |a )?(?:correct|corrett|richtig|bonne|juste)\w*",
     r"\1 is correct"),
    (r"(?i)(?<!\w)((?:il|elle|on)(?: y)?) a (?=\d)", r"\1 has "),
    (r"(?:(?:所以|因此|最终|最終|最后|正确|正解|故|の|最後の|よって、?|따라서|그러므로)\s*)*(?<![回解作])"
     r"(?:答案|答え|解答|答|結果|结果|정답|답|결과|الجواب|الإجابة|الاجابة|الناتج|उत्तर|คำตอบ(?:คือ)?"
     r"|התשובה|תשובה)(?:选项|選項)?\s*(?:是|为|為|應為|应为|は|는|은|이|選|选|هو|هي|היא|הוא)?\s*[:：、]?\s*(?=[\w$(\\*`−\-\u300c])"
     r"(?![\u0590-\u06ff\u0900-\u097f\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af])", "Answer: "),
    (r"(?<=[A-Za-z0-9$)}%*])(?:\s*(?:개|명|원|점|번|마리|시간|장|권|살|대)?\s*(?:입니다|이에요|예요|이다|[가이] 됩니다"
     r"|になります|となります|である|です|だ|है|होगा|ครับ|ค่ะ)|['’](?:d[ıiuü]r|t[ıiuü]r))(?=[\s.。।!！]|\Z)", ""),
)  # fmt: skip
"""What denies or reports behind and before, "or", "the answer is" in Latin and other scripts, "is" behind a value."""
