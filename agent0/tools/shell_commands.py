"""Finds the programs that a shell command names, so that messages can say which do not exist.

Never the boundary: that is the sandbox's root file system, and a command that cannot be parsed here is run all the
same.
"""

import re
from typing import NamedTuple

_BUILTINS = (
    ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo "
    "enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf "
    "pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit "
    "umask unalias unset wait"
)
BUILTINS = frozenset(_BUILTINS.split())
"""What bash does itself."""

LONGEST = 102_400
_DEEPEST = 20
_AGAIN = {"!", "{", "coproc", "do", "elif", "else", "if", "then", "time", "until", "while"}
"""Reserved words behind which a command begins."""
_ELSEWHERE = {"}", "done", "fi", "select"}
"""Reserved words behind which none does, up to the next separator."""

_gap = re.compile(r"(?:[ \t\r]|\\\n)*(?:#[^\n]*)?")
_control = re.compile(r";;&?|;&|&&|\|[|&]|[;&|()\n]")
_redirection = re.compile(r"(?:\d+|\{\w+\})?(?:&>>?|<<<|<<-?|[<>]&|<>|>>|>\||[<>](?!\())[ \t]*")
_assignment = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_pattern = re.compile(r"[*?{]|\[.|^[-~]", re.DOTALL)
"""What the shell may make another word of."""
_test = re.compile(r"(?:[^'\"\]]|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\](?!\]))*\]\]", re.DOTALL)
_literal = re.compile(r"[^\s;&|()<>\"'`$\\]+")
_single = re.compile(r"'([^']*)'")
_escape = re.compile(r"\\(.)", re.DOTALL)
_inner = re.compile(r"[^\"\\$`]+|\\.", re.DOTALL)
_backticks = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_quote = re.compile(r"\"")
_arithmetic = re.compile(r"\$\(\(")
_substitution = re.compile(r"[$<>]\(")
_brackets = re.compile(r"\s*\(\s*\)")
_loop = re.compile(r"\s*\(\(")
_braces = re.compile(r"\$\{")
_expansion = re.compile(r"\$(?:'(?:[^'\\]|\\.)*'|\w+|[@*#?$!-])?", re.DOTALL)


def command_words(command: str) -> list[str] | None:
    """The literal first word of every simple command, in order of first appearance, those within substitutions too;
    functions the command defines are left out, and so are words that only the shell can expand. None where ``command``
    cannot be read."""
    found = _Found([], set())
    try:
        _Reader(command[:LONGEST], found, 0).commands("")
    except _UnreadableError:
        return None
    return None if len(command) > LONGEST else [w for w in dict.fromkeys(found.words) if w not in found.functions]


class _UnreadableError(Exception):
    """A quote or bracket that is not closed, nesting without end, or grammar that is not known here."""


class _Found(NamedTuple):
    words: list[str]
    functions: set[str]


class _Word(NamedTuple):
    """``plain``: nothing in it is quoted; ``literal``: nothing is expanded."""

    text: str
    plain: bool
    literal: bool


class _Reader:
    """Reads a text once, from left to right."""

    def __init__(self, text: str, found: _Found, depth: int) -> None:
        self._text, self._found, self._depth = text, found, depth
        self._at = 0
        self._documents: list[str] = []

    def commands(self, end: str) -> None:
        """Commands up to the bracket ``end``, or the text's end where it is empty."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _UnreadableError
        start = True
        while token := self._token():
            if token == end:
                break
            start = self._command(token, start) if isinstance(token, _Word) else self._control(token, start)
        if token != end:
            raise _UnreadableError
        self._depth -= 1

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found

    def _token(self) -> _Word | str:
        """The next word or control operator, empty at the end; redirections are swallowed with their targets."""
        self._take(_gap)
        while found := self._take(_redirection):
            target = self._word()
            if found[0].strip().endswith(("<<", "<<-")):
                self._documents.append(target.text)
            self._take(_gap)
        if found := self._take(_control):
            if found[0] == "\n":
                self._skip_documents()
            return found[0]
        return self._word() if self._at < len(self._text) else ""

    def _control(self, operator: str, start: bool) -> bool:
        """Whether a command begins behind ``operator``."""
        if operator == "(":
            return self._bracket(start)
        if operator == ")" or operator.startswith((";;", ";&")):
            raise _UnreadableError
        return True

    def _bracket(self, start: bool) -> bool:
        """A subshell, arithmetic, or the brackets of a function, whose name was taken for a command."""
        if start and not self._text.startswith("(", self._at):
            self.commands(")")
        elif start:
            self._at += 1
            self._balanced("(", ")", 2)
        elif self._token() == ")" and self._found.words:
            self._found.functions.add(self._found.words.pop())
            return True
        else:
            raise _UnreadableError
        return False

    def _command(self, word: _Word, start: bool) -> bool:
        """Take in a word that may be a command's first; whether one still begins behind it."""
        if not start or (word.plain and word.text in _ELSEWHERE):
            return False
        if word.plain and word.text in ("case", "for", "function", "[["):
            return self._compound(word.text)
        if word.plain and (word.text in _AGAIN or word.text == "-p"):  # time -p
            return True
        if _assignment.match(word.text):
            return self._assigned()
        if word.literal and word.text and not _pattern.search(word.text):
            self._found.words.append(word.text)
        return False

    def _assigned(self) -> bool:
        if self._text.startswith("(", self._at):  # an array
            raise _UnreadableError
        return True

    def _compound(self, word: str) -> bool:
        if word == "function":
            name = self._token()
            self._found.functions.add(name.text if isinstance(name, _Word) else "")
            self._take(_brackets)
            return True
        if word == "for":
            if self._take(_loop):
                self._balanced("(", ")", 2)
            return False
        if word == "[[" and self._take(_test):
            return False
        # case, whose patterns end in brackets that nothing opened
        raise _UnreadableError

    def _skip_documents(self) -> None:
        for mark in self._documents:
            ending = re.compile(rf"^\t*{re.escape(mark)}$\n?", re.MULTILINE).search(self._text, self._at)
            self._at = ending.end() if ending else len(self._text)
        self._documents.clear()

    def _word(self) -> _Word:
        begun, parts, plain, literal = self._at, [""], True, True
        while self._at < len(self._text):
            if found := self._take(_literal):
                parts.append(found[0])
            elif found := self._take(_single) or self._take(_escape):
                plain = False
                parts.append(found[1].removeprefix("\n"))
            elif self._take(_quote):
                plain = False
                literal &= self._quoted(parts)
            elif self._expansion() or self._process():
                plain = literal = False
            else:
                break
        if self._at == begun:
            raise _UnreadableError
        return _Word("".join(parts), plain, literal)

    def _quoted(self, parts: list[str]) -> bool:
        """The rest of a double-quoted text, gathered in ``parts``; whether nothing in it is expanded."""
        literal = True
        while not self._take(_quote):
            if found := self._take(_inner):
                parts.append(found[0])
            elif self._expansion():
                literal = False
            else:
                raise _UnreadableError
        return literal

    def _expansion(self) -> bool:
        """Swallow one expansion, and the commands in it."""
        if self._text[self._at : self._at + 1] not in ("$", "`"):
            return False
        if found := self._take(_backticks):
            _Reader(re.sub(r"\\([\\$`])", r"\1", found[1]), self._found, self._depth).commands("")
        elif self._take(_arithmetic):
            self._balanced("(", ")", 2)
        elif self._take(_substitution):
            self.commands(")")
        elif self._take(_braces):
            self._balanced("{", "}", 1)
        elif not self._take(_expansion):
            raise _UnreadableError
        return True

    def _process(self) -> bool:
        found = self._take(_substitution)
        if found:
            self.commands(")")
        return bool(found)

    def _balanced(self, opening: str, closing: str, depth: int) -> None:
        """Swallow everything up to the bracket that closes ``depth`` open ones."""
        while depth:
            if self._at >= len(self._text):
                raise _UnreadableError
            if self._expansion() or self._take(_escape):
                continue
            sign = self._text[self._at]
            self._at += 1
            depth += (sign == opening) - (sign == closing)
            if sign == '"':
                self._quoted([])
