"""An environment of gymnasium as episodes: what it shows is text, an action is a call of the tool ``act``."""

import inspect
import json
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
wire = import_module("wire")

LONGEST = 1_500
"""Characters of what it says of itself."""
_marked = re.compile(r"\x1b\[[0-9;]*m(.*?)\x1b\[0m", re.DOTALL)


class GymEpisode:
    """One episode; it is truncated as it is registered."""

    def __init__(self, make: Any, seed: int) -> None:
        self._env = make(seed)
        self._space, base = self._env.action_space, self._env.unwrapped
        description = inspect.cleandoc(base.__doc__ or type(base).__name__)
        about, actions = description.partition("\n## Action Space")[0], _section(description, "Action Space")
        self.tools = [{"name": "act", "description": actions, "parameters": _parameters(self._space)}]
        self.question = f"{about[:LONGEST]}\n\n{self._shown(self._env.reset(seed=seed)[0])}"

    def step(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, object]:
        """An action outside its space is refused."""
        action = _action(self._space, arguments.get("action"))
        if set(arguments) != {"action"} or action is None or not self._space.contains(action):
            text = f"action must be in {self._space}, and is {arguments.get('action')!r}"
            return {"text": text[:LONGEST], "reward": None, "done": False, "refused": True}
        observation, reward, ended, truncated, _ = self._env.step(action)
        done = any([_exactly(ended, bool), _exactly(truncated, bool)])
        over = "\nThe episode has ended." if done else ""
        text = f"{self._shown(observation)}{over}"
        return {"text": text, "reward": float(_exactly(reward, int, float)), "done": done, "refused": False}

    def close(self) -> None:
        """Give back what it holds."""
        self._env.close()

    def _shown(self, observation: Any) -> str:
        decode = getattr(self._env.unwrapped, "decode", None)
        value = list(decode(int(observation))) if decode else _plain(observation)
        text = f"observation: {json.dumps(value)}"
        picture = self._env.render() if self._env.render_mode == "ansi" else ""
        return "\n".join(filter(None, [_marked.sub(r"[\1]", picture).strip(), text]))


def _section(text: str, title: str) -> str:
    """What a docstring of gymnasium says under ``title``."""
    return (text.partition(f"## {title}")[2].partition("\n## ")[0].strip() or "Takes an action.")[:LONGEST]


def _parameters(space: Any) -> dict[str, object]:
    """The JSON schema of a call with an action of ``space``."""
    kind = type(space).__name__
    if kind == "Discrete":
        first = int(space.start)
        action: dict[str, object] = {"type": "integer", "minimum": first, "maximum": first + int(space.n) - 1}
    elif kind in ("Box", "MultiDiscrete", "MultiBinary"):
        action = {"type": "array", "description": str(space)[:LONGEST]}
    else:
        raise ValueError(f"actions of {kind} cannot be written as a call")
    return {"type": "object", "properties": {"action": action}, "required": ["action"]}


def _action(space: Any, value: Any) -> Any:
    """``value`` as an element of ``space``; None where it is none."""
    if type(space).__name__ == "Discrete":
        return value if type(value) is int else None
    try:
        return import_module("numpy").asarray(value, dtype=space.dtype)
    except (TypeError, ValueError, OverflowError):
        return None


def _exactly(value: Any, *kinds: type) -> Any:
    """``value``, or numpy's, where it is of one of ``kinds``; a bool is no number."""
    value = value.item() if hasattr(value, "item") else value
    if type(value) not in kinds:
        raise TypeError(f"{value!r:.80} where {kinds[-1].__name__} is expected")
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value


def main(name: str, options: Mapping[str, Any], address: str) -> None:
    """Serve the registered environment ``name``. The option ``desc`` of a frozen lake may be ``random``: a map of its
    own for each seed."""
    gym = import_module("gymnasium")
    example = gym.make(name, **{key: value for key, value in options.items() if value != "random"})
    mode = "ansi" if "ansi" in example.metadata.get("render_modes", ()) else None
    example.close()

    def make(seed: int) -> Any:
        chosen = dict(options)
        if chosen.get("desc") == "random":
            maps = import_module("gymnasium.envs.toy_text.frozen_lake")
            chosen["desc"] = maps.generate_random_map(size=4, seed=seed)
        return gym.make(name, render_mode=mode, **chosen)

    wire.serve(address, {"name": name, "version": version("gymnasium")}, lambda seed: GymEpisode(make, seed))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3])
