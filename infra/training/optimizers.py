"""Who moves which weights, and how far."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.nn import Parameter
from torch.optim import AdamW, Muon, Optimizer

from agent0.errors import OperationError
from agent0.infra.training.full_finetune import Whole
from agent0.infra.training.launch.distributed import Team
from agent0.infra.training.launch.recipe import Recipe

OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {"adamw": AdamW, "muon": Muon}
"""Muon is for matrices only (Jordan et al. 2024), and LoRA has nothing else."""
OUTER = 0.15
"""Learning rate of embeddings, norms and biases (AdamW) as a share of that of matrices (Muon)."""
BETAS = (0.9, 0.98)
"""AdamW's, beside Muon."""
_ENDS = ("embed_tokens", "lm_head")


class Movers:
    """The optimizers of one training: ``plain`` as torch has them, each weight of ``parameters`` in one of them."""

    def __init__(self, model: Any, recipe: Recipe, team: Team) -> None:
        """Raises OperationError where there is no such optimizer."""
        self.own = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.plain = _optimizers(model, self.own, recipe)
        self._rates = [(group, group["lr"]) for optimizer in self.plain for group in optimizer.param_groups]
        self._prepared = [team.prepare(optimizer) for optimizer in self.plain]

    def begin(self, pace: float = 1.0) -> None:
        """Forget the last step's gradients, and go on at ``pace``, a share of the learning rate."""
        for group, rate in self._rates:
            group["lr"] = rate * pace
        for optimizer in self._prepared:
            optimizer.zero_grad(set_to_none=True)

    def step(self) -> None:
        """Move every weight."""
        for optimizer in self._prepared:
            optimizer.step()


def _optimizers(model: Any, parameters: list[Parameter], recipe: Recipe) -> list[Optimizer]:
    if recipe.optimizer not in OPTIMIZERS:
        names = f"Known: {', '.join(OPTIMIZERS)}."
        raise OperationError(f"There is no optimizer {recipe.optimizer!r}.", names)
    if recipe.optimizer == "muon" and isinstance(model, Whole):
        return paired(model.get_base_model(), recipe.lr, recipe.weight_decay)
    return [OPTIMIZERS[recipe.optimizer](parameters, lr=recipe.lr, weight_decay=recipe.weight_decay)]


def paired(model: torch.nn.Module, lr: float, weight_decay: float) -> list[Optimizer]:
    """Muon for the matrices between a model's ends, AdamW for the rest at ``OUTER`` of the rate."""
    inner, outer = _halves(model.named_parameters())
    return [
        Muon(inner, lr=lr, weight_decay=weight_decay),
        AdamW(outer, lr=OUTER * lr, betas=BETAS, weight_decay=weight_decay),
    ]


def _halves(named: Iterable[tuple[str, Parameter]]) -> tuple[list[Parameter], list[Parameter]]:
    inner, outer = list[Parameter](), list[Parameter]()
    for name, parameter in named:
        (outer if parameter.ndim != 2 or any(end in name for end in _ENDS) else inner).append(parameter)
    return inner, outer
