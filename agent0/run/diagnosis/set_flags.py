"""Settings as flags of a fork: only what a run takes."""

import json
from collections.abc import Mapping
from typing import Any

from agent0.settings import RunConfig


def set_flags(config: RunConfig, values: Mapping[str, object]) -> str:
    """The ``--set`` flags that give a run of ``config`` these ``values`` by dotted key, None clearing one where that
    can be. Empty where there are none, or they do not fit together."""
    pairs = {k: v for k, v in values.items() if v is not None or with_settings(config, {k: v}) is not None}
    if with_settings(config, pairs) is None:
        return ""
    texts = {key: "" if value is None else short(value, 10_000) for key, value in pairs.items()}
    return " ".join(f"--set {quoted(f'{key}={text}')}" for key, text in texts.items())


def with_settings(config: RunConfig, values: Mapping[str, object]) -> RunConfig | None:
    """Return ``config`` with ``values`` by dotted key; None where that is no valid configuration."""
    tree = config.model_dump(mode="json")
    for key, value in values.items():
        table, name = tree, key.removeprefix("run.")
        while (part := name.partition("."))[1] and isinstance(table.get(part[0]), dict):
            table, name = table[part[0]], part[2]
        table[name] = value
    try:
        return RunConfig.model_validate(tree)
    except ValueError:
        return None


def short(value: Any, most: int = 60) -> str:
    """A setting's value as ``--set`` takes it, cut where it is long."""
    if isinstance(value, list | tuple):
        parts = [json.dumps(item) if isinstance(item, str) else short(item, most) for item in value]
        text = f"[{', '.join(parts)}]"
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, float):
        text = f"{value:g}"
    else:
        text = str(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def quoted(text: str) -> str:
    """Quote ``text`` so that a shell reads it as one word."""
    return text if text.replace("=", "").replace(".", "").replace("_", "").isalnum() else f"'{text}'"
