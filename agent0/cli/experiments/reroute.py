"""The questions of a run, routed again by another strategy."""

from typing import Annotated, Any, cast, get_args

import typer

from agent0.assembly.replay.reroute import Priced, Reroute, reroute_run
from agent0.cli import console, flags, lookup
from agent0.errors import ConfigError
from agent0.routing.budgets import dollars
from agent0.settings import RoutingConfig


def reroute(
    strategy: Annotated[str, typer.Option(help="One of `agent0 router strategies`.")],
    run: console.Run = "LAST",
    role: Annotated[str, typer.Option(help="Whose questions: teacher or judge.")] = "judge",
    threshold: Annotated[float, typer.Option(min=0, max=1, help="Confidence from which an answer is given.")] = 0.7,
    worth: Annotated[float, typer.Option(metavar="USD", min=0, help="What a right answer is worth.")] = 0,
    share: Annotated[float, typer.Option(min=0, max=1, help="Share of the second model.")] = 0.5,
    allowance: Annotated[float | None, typer.Option(metavar="USD", min=0, help="For all questions together.")] = None,
    prices: Annotated[str, typer.Option(help="as-run, or settings: recorded tokens by today's prices.")] = "as-run",
    as_json: console.Json = False,
) -> None:
    """Route the questions of a finished run again, from their recorded answers: what they would have cost, how many
    answers would be the same, and which cannot be told. No model is asked. JSON: in nano-dollars."""
    if prices not in get_args(Priced):
        raise ConfigError(f"There are no prices {prices!r}.", fix="Give as-run or settings.")
    routing = RoutingConfig(
        strategy=strategy, threshold=threshold, worth_usd=worth, share=share, allowance_usd=allowance
    )
    request = Reroute(lookup.run_id(run), role, routing, cast("Priced", prices))
    results = console.run_async(lambda: reroute_run(flags.settings(), request))
    console.record(results if as_json else _as_dollars(results), as_json)


def _as_dollars(results: dict[str, Any]) -> dict[str, Any]:
    """A rerouted run as people read it."""
    least, most = results["cost"]
    low, high = results["same95"]
    cost = dollars(least) if least == most else f"{dollars(least)} to {'any' if most is None else dollars(most)}"
    same = f"{results['same']} of {results['decided']} known (95 %: {low:.2f} to {high:.2f})"
    rest = {name: value for name, value in results.items() if name != "same95"}
    return {**rest, "cost": cost, "cost_then": dollars(results["cost_then"]), "same": same}
