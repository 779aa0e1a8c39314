"""What a server is asked before a run: whether it takes the conversations that a run consists of."""

from agent0.events.values import Turn
from agent0.ports.models import GenerateRequest, Sampling

ATTEMPT = GenerateRequest(
    (
        Turn(role="user", content="What is 12+30?"),
        Turn(role="assistant", content="I compute it."),
        Turn(role="tool", name="python", content="42"),
    ),
    Sampling(max_tokens=1),
)
"""What an attempt that calls a tool consists of; one token is written."""
