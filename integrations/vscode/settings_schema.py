"""Print the JSON schema of `agent0.toml`: the settings' own, and tables of profiles, which hold settings as well."""

import json

from agent0.config.loading import profiles
from agent0.settings import Settings


def without_titles(node: object) -> object:
    """The schema without titles, which repeat names, and without defaults of whole tables."""
    if isinstance(node, list):
        return [without_titles(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: without_titles(value) for key, value in node.items() if not repeats(key, value)}


def repeats(key: str, value: object) -> bool:
    """Whether a schema tells this elsewhere: a setting may be named `title` as well, and is no text then."""
    return (key == "title" and isinstance(value, str)) or (key == "default" and isinstance(value, dict))


def schema() -> dict[str, object]:
    """The schema as editors read it; a profile is chosen by name, or is a table of settings."""
    whole = Settings.model_json_schema()
    name = {"type": "string", "examples": profiles(), "description": whole["properties"]["profile"]["description"]}
    table = {"type": "object", "additionalProperties": {"$ref": "#"}}
    whole["properties"]["profile"] = {"anyOf": [name, table]}
    shown = {key: without_titles(value) for key, value in whole.items()}
    return {**shown, "$schema": "http://json-schema.org/draft-07/schema#", "title": "agent0.toml"}


if __name__ == "__main__":
    print(json.dumps(schema(), ensure_ascii=True))
