"""How far a verdict can be trusted, measured on labelled pairs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.cli import console

app = typer.Typer(help="Verifiers, measured on labelled pairs.")


@app.callback()
def _noun() -> None:
    """A noun with one verb."""


@app.command()
def pairs(
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="JSON lines.")],
    as_json: console.Json = False,
) -> None:
    """Decide labelled pairs and count. Rows: pair_id, gold, candidate, form, label, policy for answers; pair_id, setup,
    test, entry_point, candidate, label for programs. Rows with policy=true, on which graders may differ, are apart."""
    from agent0.verification.labelled_pairs import decide_pairs, decoded, read_pairs, summary

    rows = read_pairs(decoded(file.read_bytes(), str(file)), str(file))
    held = console.settings()

    async def work() -> dict[str, Any]:
        from agent0.assembly.runtime.port_openers import open_port
        from infra.storage.artifacts import FileArtifacts

        sandbox = await open_port("verifier_sandbox", held, FileArtifacts(held.home))
        try:
            at_once = max(1, held.sandbox.workers // 2) * held.sandbox.calls
            return summary(await decide_pairs(rows, sandbox, at_once))
        finally:
            await sandbox.close()

    found = console.run_async(work)
    if as_json:
        console.data(found)
    else:
        _show(found)


def _show(found: dict[str, Any]) -> None:
    policy = found.pop("policy")
    wrong = found.pop("wrong")
    console.record(found, False)
    if wrong:
        console.text(f"wrong: {', '.join(wrong)}")
    if policy["n"]:
        console.text(f"apart, policy: {policy['n']} pairs, accuracy {policy['accuracy']:.3f}")
