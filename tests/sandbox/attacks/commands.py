"""Ways around a filter of command words. No filter is the boundary here: the file is not there."""

from tests.sandbox.attacks.table import attack

attack(
    "A01-shell-echo",
    "shell",
    r"""
echo $(cat {FOLDER}/secret.txt)
""",
)
attack(
    "A02-shell-ls;",
    "shell",
    r"""
ls; cat {FOLDER}/secret.txt
""",
)
attack(
    "A03-shell-ls",
    "shell",
    r"""
ls
cat {FOLDER}/secret.txt
""",
)
attack(
    "A04-shell-cat",
    "shell",
    r"""
cat${IFS}{FOLDER}/secret.txt
""",
)
attack(
    "A05-shell-A=ca",
    "shell",
    r"""
A=ca B=t; $A$B {FOLDER}/secret.txt
""",
)
attack(
    "A06-shell-shopt",
    "shell",
    r"""
shopt -s expand_aliases
alias ls='cat {FOLDER}/secret.txt'
ls
""",
)
attack(
    "A07-shell-find",
    "shell",
    r"""
find / -name 'secret.txt' -exec cat {} \; 2>/dev/null
""",
)
attack(
    "A08-shell-tar",
    "shell",
    r"""
tar cf /dev/null /box --checkpoint=1 --checkpoint-action=exec='cat {FOLDER}/secret.txt'
""",
)
attack(
    "A09-shell-git",
    "shell",
    r"""
git -c alias.x='!cat {FOLDER}/secret.txt' x
""",
)
attack(
    "A10-shell-awk",
    "shell",
    r"""
awk 'BEGIN{system("cat {FOLDER}/secret.txt")}'
""",
)
attack(
    "A11-shell-python3",
    "shell",
    r"""
python3 -c "print(open('{FOLDER}/secret.txt').read())"
""",
)
attack(
    "A12-shell-env",
    "shell",
    r"""
env -i bash -c 'cat {FOLDER}/secret.txt'
""",
)
attack(
    "A13-shell-sed",
    "shell",
    r"""
sed '1e cat {FOLDER}/secret.txt' /dev/null; sed -n '1e cat {FOLDER}/secret.txt' <<< x
""",
)
attack(
    "A14-shell-cat",
    "shell",
    r"""
cat < {FOLDER}/secret.txt
""",
)
attack(
    "A15-shell-LD_PRELOAD=/",
    "shell",
    r"""
LD_PRELOAD=/box/x.so ls; BASH_ENV={FOLDER}/secret.txt bash -c true
""",
)
attack(
    "A16-shell-xargs",
    "shell",
    r"""
xargs -I{} cat {} <<< {FOLDER}/secret.txt
""",
)
attack(
    "A17-shell-vim",
    "shell",
    r"""
vim -es '+!cat {FOLDER}/secret.txt' +q; perl -e 'print `cat {FOLDER}/secret.txt`'
""",
)
attack(
    "A18-shell-echo",
    "shell",
    r"""
echo {READ64} | base64 -d | sh; echo {READ64} | base64 -d | bash
""",
)
attack(
    "A19-shell-printf",
    "shell",
    r"""
printf -v x '\143at'; $x {FOLDER}/secret.txt
""",
)
attack(
    "A20-shell-/lib64/ld-li",
    "shell",
    r"""
/lib64/ld-linux-x86-64.so.2 /usr/bin/cat {FOLDER}/secret.txt
""",
)
attack(
    "A21-shell-finds-no-interpreter",
    "shell",
    r"""
find / -type f -name 'python*' 2>/dev/null | grep . && echo ESCAPE || echo BLOCKED
""",
    prints="BLOCKED",
)
