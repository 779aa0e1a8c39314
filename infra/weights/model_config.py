"""What config.json says of a causal language model, as far as it is read without transformers."""

from pathlib import Path
from typing import Self

from pydantic import BaseModel


class Rotation(BaseModel):
    """How a model turns the positions of tokens into angles."""

    rope_type: str | None = None
    type: str | None = None
    rope_theta: float | None = None

    @property
    def kind(self) -> str:
        """``default`` where the angles are not scaled."""
        return self.rope_type or self.type or "default"


class ModelKind(BaseModel):
    """The kind of a model. Which of its sizes a configuration names depends on the kind."""

    architectures: list[str] | None = None
    model_type: str | None = None
    hidden_act: str | None = "silu"
    attention_bias: bool | None = None
    mlp_bias: bool | None = None
    use_sliding_window: bool | None = None
    rope_parameters: Rotation | None = None
    rope_scaling: Rotation | None = None
    rope_theta: float | None = None
    max_position_embeddings: int | None = None
    quantization_config: object = None

    @classmethod
    def of_folder(cls, folder: Path) -> Self:
        """Read ``folder/config.json``.

        Raises:
            OSError, ValueError: there is none, or it is of another form.
        """
        return cls.model_validate_json((folder / "config.json").read_bytes())

    @property
    def architecture(self) -> str:
        """The first that is named."""
        return (self.architectures or ["unknown"])[0]

    @property
    def rotation(self) -> Rotation:
        """By whichever name it has."""
        return self.rope_parameters or self.rope_scaling or Rotation()

    @property
    def theta(self) -> float:
        """The base of the rotation's frequencies."""
        return self.rotation.rope_theta or self.rope_theta or 10_000.0


class ModelConfig(ModelKind):
    """The sizes of a model, by names that most families share."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    vocab_size: int
    rms_norm_eps: float = 1e-6
    tie_word_embeddings: bool = False

    @property
    def head_share(self) -> int:
        """The share of a head in a layer's width."""
        return self.hidden_size // self.num_attention_heads

    @property
    def head_width(self) -> int:
        """The width of a head, which may be more than its share."""
        return self.head_dim or self.head_share

    @property
    def groups(self) -> int:
        """Heads of keys and values."""
        return self.num_key_value_heads or self.num_attention_heads
