"""Where a model cannot be computed is told by name, before anything is loaded."""

import pytest
import torch

from agent0.errors import DependencyError
from agent0.infra.training.launch.devices import check_device


@pytest.mark.parametrize(
    ("device", "count", "words"),
    [
        ("cuda", 0, "torch sees no GPU"),
        ("cuda:0", 0, "torch sees no GPU"),
        ("cuda:1", 1, "one GPU, cuda:0"),
        ("cuda:7", 2, "2 GPUs, cuda:0 to cuda:1"),
        ("cuda:", 2, "neither cpu nor cuda"),
        ("cuda:-1", 2, "neither cpu nor cuda"),
        ("mps", 2, "neither cpu nor cuda"),
        ("", 2, "neither cpu nor cuda"),
    ],
)
def test_a_device_that_is_not_there_is_refused(
    device: str, count: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    with pytest.raises(DependencyError, match=words):
        check_device(device)


def test_a_device_that_is_there_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for device in ("cpu", "cuda", "cuda:0", "cuda:1"):
        check_device(device)
