"""An environment of the package verifiers as episodes of one step: the tool ``reply`` is its turn, and its rubric's
reward what that is worth."""

import asyncio
import json
import logging
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
wire = import_module("wire")

REPLY = {
    "name": "reply",
    "description": "Writes the reply that is asked for, whole and in the form that is asked for.",
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


class ReplyEpisode:
    """A row of its data set: the prompt is the question, a reply ends it."""

    def __init__(self, environment: Any, row: Mapping[str, Any]) -> None:
        self._environment, self._row, self.tools = environment, row, [REPLY]
        self.question = "\n\n".join(_text(message) for message in row["prompt"])

    def step(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, object]:
        """Score the reply; what is no text is refused."""
        text = arguments.get("text")
        if not isinstance(text, str):
            return {"text": "text must be a text", "reward": None, "done": False, "refused": True}
        reward = asyncio.run(self._score(text))
        return {"text": "The episode has ended.", "reward": reward, "done": True, "refused": False}

    async def _score(self, text: str) -> float:
        import_types = import_module("verifiers.types")
        state = import_types.State(input=import_types.RolloutInput(**self._row), timing=import_types.RolloutTiming())
        state["trajectory"], state["completion"] = [], [{"role": "assistant", "content": text}]
        failures = _Failures()
        self._environment.rubric.logger.addHandler(failures)  # what raises there is logged, and would be 0
        await self._environment.rubric.score_rollout(state)
        self._environment.rubric.logger.removeHandler(failures)
        if failures.first:
            raise RuntimeError(failures.first)
        return float(state["reward"])


class _Failures(logging.Handler):
    """The first error that a rubric logs."""

    first = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            self.first = self.first or record.getMessage()


def _text(message: Any) -> str:
    content = message["content"] if isinstance(message, Mapping) else message.content
    return content if isinstance(content, str) else json.dumps(content)


def main(name: str, options: Mapping[str, Any], address: str) -> None:
    """Serve the rows of an environment, those of its data set for training, else those for evaluation."""
    verifiers = import_module("verifiers")
    environment = verifiers.load_environment(name, **options)
    if not isinstance(environment, verifiers.SingleTurnEnv):
        raise TypeError(f"{name} is {type(environment).__name__}, and only environments of one turn can be asked")
    rows = environment.get_dataset() if environment.dataset is not None else environment.get_eval_dataset()
    about = {"name": name, "version": version("verifiers"), "tasks": len(rows)}
    wire.serve(address, about, lambda seed: ReplyEpisode(environment, rows[seed]))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3])
