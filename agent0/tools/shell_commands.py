"""Lists the programs that a shell command names, for advice. The boundary is the sandbox's root file system."""

import re
import shlex

_BUILTINS = (
    ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo "
    "enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf "
    "pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit "
    "umask unalias unset wait"
)
BUILTINS = frozenset(_BUILTINS.split())
"""What bash does itself."""

LONGEST = 102_400
"""Characters of a command that are read."""
_BEFORE = {"!", "{", "coproc", "do", "elif", "else", "if", "then", "time", "until", "while"}
"""Reserved words before a command."""
_OTHER = {"}", "case", "done", "esac", "fi", "for", "function", "in", "select", "[[", "]]"}
_OPERATORS = ";|&()`\n"

_document = re.compile(r"<<-?\s*(['\"]?)(\w+)\1(.*?)\n.*?^\t*\2$", re.DOTALL | re.MULTILINE)
_redirection = re.compile(r"[<>]&[\d-]|&>>?|(?:\d?(?:<<<|>>|>\||[<>]))(?!\()[ \t]*[^\s;|&()`]+")
_assignment = re.compile(r"[A-Za-z_]\w*\+?=")
_expanded = re.compile(r"[$*?{~]")
_missing = re.compile(r"^(?:\S*/)?bash: line \d+: (.+): (?:command not found|No such file or directory)$", re.MULTILINE)


def command_words(command: str) -> list[str] | None:
    """List the first word of each simple command outside double quotes, once each, in order; words that the shell
    expands are left out. None where a quote is not closed or the text is too long."""
    if len(command) > LONGEST:
        return None
    text = _redirection.sub(" ", _document.sub(r"\3", command))
    reader = shlex.shlex(text, posix=True, punctuation_chars=_OPERATORS)
    reader.whitespace, reader.whitespace_split = " \t\r", True
    programs, first = [], True
    try:
        for token in reader:
            if token in _BEFORE or (token and token[0] in _OPERATORS):
                first = True
            elif first and not _assignment.match(token):
                programs.append(token)
                first = False
    except ValueError:
        return None
    return [
        program
        for program in dict.fromkeys(programs)
        if program and program not in _OTHER and not _expanded.search(program)
    ]


def missing_programs(stderr: str) -> list[str]:
    """List the programs that bash says in ``stderr`` it did not find, once each, in order."""
    return list(dict.fromkeys(_missing.findall(stderr)))
