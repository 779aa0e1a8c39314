"""The words a shell command runs, as bash itself reads them."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.tools.shell_commands import BUILTINS, command_words, missing_programs

WORDS = [
    ("ls -l", ["ls"]),
    ("ls; cat x | sort && wc -l || tr a b & date", ["ls", "cat", "sort", "wc", "tr", "date"]),
    ("ls\ncat a\\\n b\n\n# git\nwc # more", ["ls", "cat", "wc"]),
    ("A=1 B='x y' ls; C=$(date) D=2", ["ls", "date"]),
    ("echo $(cat $(find . -name x)) `hg log`", ["echo", "cat", "find", "hg"]),
    ("if grep -q x f; then echo a; elif test -e g; then cut -f1; else rm g; fi", ["grep", "echo", "test", "cut", "rm"]),
    ("while read -r x; do awk '{print}'; done < f", ["read", "awk"]),
    ("(cd x && ls) | { cat; sort; }", ["cd", "ls", "cat", "sort"]),
    ("cat <<EOF > out\n$(never) `x` git\nEOF\nwc out", ["cat", "wc"]),
    ("bc <<< 6*7; sort < in > out 2>&1; ls &> /dev/null", ["bc", "sort", "ls"]),
    ("2>/dev/null >out ls", ["ls"]),
    ("$CMD x; l\\s; 'w'c; \"cat\"", ["ls", "wc", "cat"]),
    ("! grep x f; ./run.sh; /usr/bin/wc", ["grep", "./run.sh", "/usr/bin/wc"]),
    ("l{s,l}; l* x; ~/x", []),
    ("", []),
    ("'' ls", []),
    ("echo 'open", None),
    ('echo "open', None),
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
    return set(missing_programs(done.stderr.decode(errors="replace")))


NAMES = st.sampled_from(["aaa", "bbb", "ccc", "ddd"])
SIMPLE = st.tuples(NAMES, st.sampled_from(["", " eee", " 'f g'", ' "h i"', " 2>&1", " $(jjj)", " `kkk`", " \\;"]))
COMMANDS = st.recursive(
    SIMPLE.map("".join),
    lambda inner: (
        st.tuples(inner, st.sampled_from([" ; ", " | ", "\n", " || "]), inner).map("".join)
        | inner.map("( {} )".format)
        | inner.map("{{ {}\n}}".format)
        | inner.map("if ! {}\nthen lll; else mmm; fi".format)
        | inner.map("echo $( {} )".format)
        | inner.map("for x in nnn; do {}\ndone".format)
    ),
    max_leaves=5,
)


@given(COMMANDS)
def test_bash_looks_for_no_other_words(command: str) -> None:
    """Everything that bash did not find was listed."""
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
