"""Whether settings are valid, with all that they name."""

from agent0.assembly.runtime.providers import check_models
from agent0.assembly.validate.run_config import check_names
from agent0.cli import console, flags


def validate(profile: console.Profile = None, pairs: console.Set = None, as_json: console.Json = False) -> None:
    """Check settings and everything that they name (models, tools, domains, rewards, prompts)."""
    settings = flags.settings(profile, pairs)
    check_names(settings.run)
    check_models(settings.run)
    digest = settings.run.to_record()[1]
    if as_json:
        console.data({"valid": True, "profile": settings.profile, "config_sha": digest})
    else:
        console.text(f"Valid. Profile {settings.profile}, configuration {digest[:12]}.")
