"""Run by a Python of its own that has `verifiers`: what that package's client, with which trainers make rollouts,
captures of one answer. Reads the question as JSON from standard input, and writes what it captured."""

import asyncio
import json
import sys


async def captured(asked: dict[str, object]) -> dict[str, object]:
    from openai import AsyncOpenAI
    from verifiers.clients.openai_chat_completions_client import OpenAIChatCompletionsClient
    from verifiers.types import SystemMessage, UserMessage

    kinds = {"system": SystemMessage, "user": UserMessage}
    messages = [kinds[message["role"]](content=message["content"]) for message in asked["messages"]]
    client = OpenAIChatCompletionsClient(AsyncOpenAI(base_url=asked["base_url"], api_key="none"))
    said = await client.get_response(messages, asked["model"], asked["sampling"])
    return said.message.tokens.model_dump(
        include={"prompt_ids", "completion_ids", "completion_mask", "completion_logprobs"}
    )


if __name__ == "__main__":
    json.dump(asyncio.run(captured(json.load(sys.stdin))), sys.stdout)
