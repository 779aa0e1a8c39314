"""What a model is computed on: the CPU, or a GPU that torch sees."""

import torch

from agent0.errors import DependencyError

_FIX = "Name cpu (run.student.device, run.teacher.device), or install a driver and torch for your GPU."


def check_device(device: str) -> None:
    """Raises DependencyError where ``device`` (cpu, cuda, cuda:1 …) is not one that torch sees."""
    kind, _, number = device.partition(":")
    if device == "cpu":
        return
    if kind != "cuda" or not (number.isdecimal() or device == "cuda"):
        raise DependencyError(f"The device {device}", "It is neither cpu nor cuda, cuda:1 ….", _FIX)
    count = torch.cuda.device_count()
    if not count:
        raise DependencyError(f"The device {device}", "torch sees no GPU.", _FIX)
    if int(number or 0) >= count:
        visible = "one GPU, cuda:0" if count == 1 else f"{count} GPUs, cuda:0 to cuda:{count - 1}"
        raise DependencyError(f"The device {device}", f"torch sees {visible}.", _FIX)
