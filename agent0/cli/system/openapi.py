"""The description of the API of `agent0 up`."""

from agent0.api.admission.keys import KeyFile
from agent0.api.app import create_app
from agent0.api.context import ApiContext
from agent0.api.past import PastTables
from agent0.cli import console, flags


def openapi() -> None:
    """Print the description of the API as OpenAPI 3.1 in JSON."""
    settings = flags.settings()
    console.data(create_app(ApiContext(settings, KeyFile(settings.home), PastTables(settings))).openapi())
