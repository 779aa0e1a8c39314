"""Much is asked at once of an Ollama that answers one chat at a time: nothing is given up, whatever becomes of it.

A turn takes 4 ms for 4 seconds. By default a call has ten tries of 300 seconds, which is 75 turns; here it has three of
250, since a busy machine takes longer than 4 ms. Bus, log and handlers are the real ones.
"""

import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import pytest
import pytest_asyncio

from agent0.chat_format import format_call
from agent0.events.base import Event, record
from agent0.events.checkpoints import EvaluationRequested
from agent0.events.tasks import AttemptRequested
from agent0.events.values import Turn
from agent0.handlers import handlers
from agent0.infra.bus.bus import Bus
from agent0.infra.models.ollama.provider import Ollama
from agent0.provenance.fork_history import Branches
from agent0.run.lifecycle import evolve
from agent0.settings import HandlerSettings, Settings, StudentConfig
from agent0.state.run_state import attempt_id, task_id
from agent0.tasks.splits import heldout
from tests.bus.toys import World
from tests.memory import MemoryArtifacts
from tests.ollama_server import Lines, OllamaServer
from tests.ollama_wire import Running, running
from tests.patience import until
from tests.world import NOON, Opened, ports, small, started

ATTEMPTS = 8
STUDENT = StudentConfig(provider="ollama", max_tokens=200, timeout_s=1)


@pytest.fixture
def settings() -> Settings:
    return Settings(handlers=HandlerSettings(retry_delay_s=0.001, ack_wait_s=15, max_deliver=3))


def says(turns: Sequence[Turn]) -> str:
    """An answer, for one question of four after a call."""
    calls = turns[-1].role == "user" and len(turns[-1].content) % 4 == 0
    return format_call("python", {"code": "print(42)"}) if calls else "\\boxed{42}"


@pytest.fixture
def ollama() -> OllamaServer:
    return OllamaServer(MemoryArtifacts(), turn_s=0.004, says=says)


@pytest.fixture
def server(ollama: OllamaServer) -> Iterator[Running]:
    with running(ollama) as run:
        yield run


@pytest_asyncio.fixture
async def student(ollama: OllamaServer, server: Running) -> AsyncIterator[Ollama]:
    model = Ollama(STUDENT, ollama.url)
    yield model
    await model.close()


async def run(world: World, student: Ollama, tasks: int, *asked: Event) -> None:
    """Put a run and what it asks for into the log, and have the handlers of a student react to it."""
    config = small(tasks=tasks, attempts=ATTEMPTS, student=STUDENT.model_dump())
    chosen = [handlers()[name] for name in ("attempt_task", "evaluate_checkpoint", "evaluate_item")]
    await world.provision(*chosen)  # type: ignore[arg-type]
    await world.put(started(config), *(record(event, run="r1", time=NOON) for event in asked))
    played = ports() | {"models": Opened(student), "history": Branches(world.log)}
    bus = Bus(world.log, chosen, played, evolve, world.settings, "rev", fatal=world.deaths.append)
    world.buses.append(bus)
    await bus.start()


def evaluation(items: int) -> Event:
    return EvaluationRequested(
        evaluation="base-validation",
        checkpoint="base",
        iteration=-1,
        split="validation",
        n=items,
        seed=7,
        state_sha="",
    )


def attempts(tasks: int) -> list[Event]:
    return [
        AttemptRequested(
            task=task_id(0, slot),
            attempt=attempt_id(task_id(0, slot), number),
            iteration=0,
            number=number,
            proposal=task,
            seed=ATTEMPTS * slot + number,
            student="base",
            state_sha="",
        )
        for slot, task in enumerate(heldout("validation", tasks, 7))
        for number in range(ATTEMPTS)
    ]


@pytest.mark.parametrize(
    ("tasks", "items"), [(6, 15), pytest.param(64, 150, marks=pytest.mark.slow)], ids=["small", "make crash"]
)
async def test_nothing_is_given_up_though_the_server_dies_in_the_middle(
    world: World, student: Ollama, ollama: OllamaServer, server: Running, tasks: int, items: int
) -> None:
    """8 attempts at each task and an evaluation at once; the server is killed among them and comes back."""
    asked = attempts(tasks)
    await run(world, student, tasks, evaluation(items), *asked)
    await until(lambda: len(ollama.prompts) > (len(asked) + items) // 4, "a quarter of the attempts and items")
    server.kill()
    await world.until_any(1, "DependencyLost")
    server.start()
    await world.quiet()
    ended = await world.stored("TaskAttempted")
    assert len(ended) == len(asked)
    assert {one.event.attempt for one in ended} == {one.attempt for one in asked}  # type: ignore[attr-defined]
    (evaluated,) = await world.stored("CheckpointEvaluated")
    assert evaluated.event.n == items  # type: ignore[attr-defined]
    assert not await world.stored("ReactionFailed")
    assert await world.stored("DependencyRestored")
    assert ollama.most <= STUDENT.parallel


def poisoned() -> Callable[[Lines], Lines]:
    """Every fifth answer is one that no server should send: half a character, a NUL, endless nesting, a number that no
    machine reads, no JSON."""
    count, kinds = (
        itertools.count(1),
        itertools.cycle(("\ud835", "\0", b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}", b"{")),
    )

    def spoil(lines: Lines) -> Lines:
        if next(count) % 5:
            return lines
        whole, poison = list(lines), next(kinds)
        if isinstance(poison, bytes):
            return iter([poison])  # type: ignore[list-item]
        whole[0]["message"]["content"] = poison + whole[0]["message"]["content"]
        return iter(whole)

    return spoil


async def test_one_poisoned_reply_in_five_ends_nothing(world: World, student: Ollama, ollama: OllamaServer) -> None:
    """Each attempt and item ends, or is given up by its real cause; the process and the others go on."""
    ollama.spoils_stream = poisoned()
    asked = attempts(4)
    await run(world, student, 4, evaluation(10), *asked)
    await world.quiet()
    ended, failed = await world.stored("TaskAttempted"), await world.stored("ReactionFailed")
    lost = [one for one in failed if one.event.failed_handler != "evaluate_item"]  # type: ignore[attr-defined]
    assert len(ended) + len(lost) == len(asked) and not world.deaths
    tried = await world.stored("ReactionTried")
    named = [*(one.event for one in tried), *(one.event for one in failed)]
    assert named and all("could not be read" in one.message for one in named)  # type: ignore[attr-defined]
    assert any("\ufffd" in turn.content for one in ended for turn in one.event.transcript)  # type: ignore[attr-defined]
