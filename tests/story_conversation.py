"""The conversation of each item that ``tests.story`` evaluates."""

from agent0.events.values import Conversation, ToolCall, ToolResult, ToolState, ToolUse, Turn

CONVERSATION = Conversation(
    transcript=(
        Turn(role="user", content="Find x: x=1"),
        Turn(role="assistant", content='<tool_call>{"name": "python", "arguments": {"code": "print(1)"}}</tool_call>'),
        Turn(role="tool", name="python", content="1"),
        Turn(role="assistant", content="It is \\boxed{1}."),
    ),
    calls=(
        ToolUse(
            turn=0,
            call=ToolCall(name="python", arguments={"code": "print(1)"}, raw="print(1)"),
            result=ToolResult(state=ToolState.OK, output="1", wall_s=0.1, rc=0),
        ),
    ),
)
