"""The page of how models call tools; ``agent0 doctor`` says the same."""

from agent0.api.context import Context
from agent0.api.pages.twins import Shown, twin
from agent0.assembly.validate.call_forms import call_forms


@twin("/models/calls", "calls.html.jinja", tagged=False)
def calls(context: Context) -> Shown:
    """Which form of calls each model's chat template teaches, and what of it is read back."""
    return Shown({"models": call_forms(context.settings)})
