"""The words a shell command runs, as bash itself reads them."""

import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.tools.shell_commands import BUILTINS, command_words

WORDS = [
    ("ls -l", ["ls"]),
    ("ls; cat x | sort && wc -l || tr a b & date", ["ls", "cat", "sort", "wc", "tr", "date"]),
    ("ls\ncat a\\\n b\n\n# git\nwc # more", ["ls", "cat", "wc"]),
    ("A=1 B='x y' ls; C=$(date) D=2", ["ls", "date"]),
    ("echo \"$(git log) `hg log`\" '$(svn)' \\$(x", None),
    ("echo \"$(git log) `hg log`\" '$(svn)' \\$x", ["echo", "git", "hg"]),
    ("echo $(cat $(find . -name x))", ["echo", "cat", "find"]),
    ("echo `echo \\`date\\``", ["echo", "date"]),
    ("diff <(sort a) <(sort b) > >(tee c)", ["diff", "sort", "tee"]),
    ("if grep -q x f; then echo a; elif test -e g; then cut -f1; else rm g; fi", ["grep", "echo", "test", "cut", "rm"]),
    ("for i in git hg; do wc $i; done; for ((i=0;i<3;i++)); do bc; done", ["wc", "bc"]),
    ("while read -r x; do awk '{print}'; done < f", ["read", "awk"]),
    ("until ! false; do true; done", ["false", "true"]),
    ("(cd x && ls) | { cat; sort; }", ["cd", "ls", "cat", "sort"]),
    ("f() { git; }; f; function g { hg; }; g", ["git", "hg"]),
    ("cat <<EOF > out\n$(never) `x` git\nEOF\nwc out", ["cat", "wc"]),
    ("cat <<-'E F'\n\tgit\n\tE F\nls", ["cat", "ls"]),
    ("bc <<< 6*7; sort < in > out 2>&1; ls &> /dev/null", ["bc", "sort", "ls"]),
    ("2>/dev/null >out ls", ["ls"]),
    ('$CMD x; ${A:-git} y; "$x"ls; l\\s; \'w\'c; "cat"', ["ls", "wc", "cat"]),
    ("[[ -e x && y < z ]] && ls; [ -e x ] && wc", ["ls", "[", "wc"]),
    ('(( x = (1 + 2) * 3 )) && echo $((1 + (2))) ${x:-$(date)} ${y:-"}"}', ["echo", "date"]),
    ("time -p ls; ! grep x f; ./run.sh; /usr/bin/wc", ["ls", "grep", "./run.sh", "/usr/bin/wc"]),
    ("l{s,l}; l* x; ~/x", []),
    ("", []),
    ("echo 'open", None),
    ('echo "open', None),
    ("echo $(ls", None),
    ("(ls", None),
    ("ls )", None),
    ("echo ${x", None),
    ("case x in x) git;; esac", None),
    ("a=(1 2 3)", None),
    ("ls >", None),
    ("$(" * 30 + ")" * 30, None),
    ("x" * 200_000, None),
]


@pytest.mark.parametrize(("command", "words"), WORDS, ids=range(len(WORDS)))
def test_words_are_those_that_are_run(command: str, words: list[str] | None) -> None:
    assert command_words(command) == words


def traced(command: str) -> set[str]:
    """First words that bash itself looked for, with nothing on its path."""
    done = subprocess.run(
        ["/bin/bash", "--noprofile", "--norc", "-c", command],
        env={"PATH": "/nowhere", "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
    )
    return set(re.findall(r"line \d+: (\w+): command not found", done.stderr.decode(errors="replace")))


NAMES = st.sampled_from(["aaa", "bbb", "ccc", "ddd"])
SIMPLE = st.tuples(NAMES, st.sampled_from(["", " eee", " 'f g'", ' "h i"', " 2>&1", " $(jjj)", " `kkk`", " \\;"]))
COMMANDS = st.recursive(
    SIMPLE.map("".join),
    lambda inner: (
        st.tuples(inner, st.sampled_from([" ; ", " | ", "\n", " || "]), inner).map("".join)
        | inner.map("( {} )".format)
        | inner.map("{{ {}\n}}".format)
        | inner.map("if ! {}\nthen lll; else mmm; fi".format)
        | inner.map('echo "$( {} )"'.format)
        | inner.map("for x in nnn; do {}\ndone".format)
    ),
    max_leaves=5,
)


@given(COMMANDS)
def test_bash_looks_for_no_other_words(command: str) -> None:
    """Everything bash did not find was told before."""
    words = command_words(command)
    assert words is not None
    assert traced(command) <= set(words)


@given(st.text(alphabet="ab ;|&()<>\"'`$\\{}[]\n#=!*", max_size=60))
def test_any_text_is_read_or_not(command: str) -> None:
    words = command_words(command)
    assert words is None or all(isinstance(word, str) and word for word in words)


def test_builtins_are_those_of_bash() -> None:
    listed = subprocess.run(["/bin/bash", "-c", "compgen -b"], capture_output=True, text=True, timeout=20).stdout
    assert set(listed.split()) <= BUILTINS
