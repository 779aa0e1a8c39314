"""Models of an Ollama server: the provider, what the server says of them, and how they are made and probed."""

CLOUD = "ollama.com"
"""Who computes, and charges for, models whose names say that they are not here."""


def is_cloud(model: str) -> bool:
    """Whether the name of a model (``NAME:cloud``, ``NAME:TAG-cloud``) says that another machine computes it."""
    tag = model.rpartition(":")[2].lower() if ":" in model else ""
    return tag == "cloud" or tag.endswith("-cloud")
