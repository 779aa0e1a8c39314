"""An attempt that begins with files: tools see them, and going back to the start keeps them."""

from agent0.chat_format import format_call
from agent0.events.values import Task
from agent0.rollout.prompts import prompt
from agent0.rollout.student import Conditions, solve
from agent0.settings import StudentConfig
from agent0.tools.snapshots import save
from tests.memory import MemoryArtifacts, TrustingSandbox
from tests.test_student import Playback

TASK = Task(question="What is in a.txt?", domain="math", family="files", level=1, canonical="files")
CALLS = [
    format_call("write_file", {"path": "a.txt", "content": "other\n"}),
    format_call("rollback", {"call": 0}),
    format_call("read_file", {"path": "a.txt"}),
]


async def test_tools_see_what_lay_there_and_going_back_keeps_it() -> None:
    artifacts = MemoryArtifacts()
    start = save({"a.txt": b"forty-two\n"}, artifacts)
    config = StudentConfig(max_tokens=200, max_turns=6, max_calls=6, tools=("read_file", "write_file", "rollback"))
    model = Playback([*CALLS, "\\boxed{forty-two}"])
    given = Conditions(model, config, TrustingSandbox(), artifacts, seed=0, start=start)
    solved = await solve(TASK, prompt("compact", "math", "student"), given)
    assert solved.answer == "forty-two"
    assert "forty-two" in solved.tool_calls[-1].result.output
    assert "changed: a.txt" in solved.tool_calls[1].result.output
    assert solved.work is not None
    assert solved.work.sha256 == start.sha256
