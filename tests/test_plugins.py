"""Strangers' modules under the entry point group: imported once, registered like our own, named where they break."""

import importlib.util
import sys
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from agent0.assembly.runtime import model_ports, moved_paths, plugins, providers
from agent0.errors import ConfigError
from agent0.ports.models import Model
from agent0.settings import ActorConfig, Settings, StudentConfig
from agent0.state.run_state import RunState
from agent0.tasks import families
from agent0.tasks.families import wording
from agent0.tools import results
from agent0.training import objectives
from agent0.verification import verifiers
from infra.models.scripted import Scripted
from tests.memory import MemoryArtifacts

PLUGIN = """
from agent0.assembly.runtime.providers import Provider, provider
from infra.models.scripted import Scripted
provider(Provider("stranger", lambda actor, settings, artifacts: Scripted(artifacts)))
"""


EARLIER = """
from agent0.assembly.models import provider
from agent0.families import Family, family
from agent0.families.wording import ask
from agent0.ports import Model, Sandbox
from agent0.rewards import Facts, reward
from agent0.run import RunState
from agent0.state import attempt_id
from agent0.tools import Example, tool
from agent0.tools.answer import answer
from agent0.tools.workspace import Workspace
from agent0.verifiers import Verdict, verifier
from events.tasks import TaskProposed
from events.values import Task, ToolResult
from handlers import on
from projections.base import Row, projection
import agent0.objectives
OBJECTIVES = agent0.objectives.objectives
"""


def _forget_moves() -> None:
    """Old paths are not there again, as in a process without plugins."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not moved_paths._finder]
    for name in [n for n in sys.modules if any(f"{n}.".startswith(f"{old}.") for old in moved_paths.MOVED)]:
        del sys.modules[name]
    for old in (*moved_paths.SPLIT, *moved_paths.RENAMED):
        vars(importlib.import_module(old)).pop("__getattr__", None)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs a module as a plugin; forgets it afterwards."""
    monkeypatch.setattr(providers._providers, "entries", dict(providers._providers.entries))
    monkeypatch.syspath_prepend(str(tmp_path))
    asked: list[str] = []

    def install(name: str, text: str) -> list[str]:
        (tmp_path / f"{name}.py").write_text(text)
        points = EntryPoints([EntryPoint(name, name, plugins.PLUGINS)])
        monkeypatch.setattr(plugins, "entry_points", lambda group: asked.append(group) or points)
        plugins.load_plugins.cache_clear()
        return asked

    yield install
    plugins.load_plugins.cache_clear()
    _forget_moves()
    for name in ("stranger_plugin", "broken_plugin", "earlier_plugin"):
        sys.modules.pop(name, None)


def test_a_plugin_adds_a_provider_and_is_looked_for_once(installed):
    asked = installed("stranger_plugin", PLUGIN)
    ports = model_ports.OpenModels(Settings(), MemoryArtifacts())
    first = ports.open(ActorConfig(provider="stranger"))
    assert isinstance(first, Scripted)
    assert ports.open(ActorConfig(provider="stranger", temperature=0.5)) is first
    assert asked == [plugins.PLUGINS]


def test_a_plugin_that_cannot_be_imported_is_named(installed):
    installed("broken_plugin", "import no_such_module\n")
    with pytest.raises(ConfigError, match=r"broken_plugin.*no_such_module"):
        providers.providers()


def test_a_plugin_written_before_the_rooms_gets_the_modules_of_today(installed):
    installed("earlier_plugin", EARLIER)
    with pytest.warns(DeprecationWarning, match=" moved to ") as warned:
        plugins.load_plugins()
    found = sys.modules["earlier_plugin"]
    assert (found.family, found.verifier, found.ask) == (families.family, verifiers.verifier, wording.ask)
    assert (found.provider, found.RunState, found.Model) == (providers.provider, RunState, Model)
    assert (found.answer, found.OBJECTIVES) == (results.answer, objectives.objectives)
    said = {str(one.message) for one in warned}
    assert "agent0.families moved to agent0.tasks.families" in said
    assert "agent0.ports.Model moved to agent0.ports.models" in said


def test_a_name_that_is_gone_is_told_with_the_new_path(installed):
    installed("broken_plugin", "from agent0.state import no_such_name\n")
    with pytest.raises(ConfigError, match=r"agent0\.state moved to agent0\.state\.run_state"):
        providers.providers()


@pytest.mark.filterwarnings("ignore:.* moved to :DeprecationWarning")
@pytest.mark.parametrize("module", moved_paths.RENAMED)
def test_every_old_name_is_the_new_one_and_no_other(installed, module):
    there = vars(importlib.import_module(module))
    names = moved_paths.RENAMED[module]
    assert not set(names) & set(there) and set(names.values()) <= set(there)
    text = "".join(f"from {module} import {old}\n" for old in names)
    installed("earlier_plugin", text)
    plugins.load_plugins()
    assert all(getattr(sys.modules["earlier_plugin"], old) is there[new] for old, new in names.items())
    assert not hasattr(importlib.import_module(module), "no_such_name")


@pytest.mark.filterwarnings("ignore:.* moved to :DeprecationWarning")
@pytest.mark.parametrize("old", [*moved_paths.MOVED, *moved_paths.SPLIT])
def test_every_old_path_leads_to_a_module_that_is_there(installed, old):
    there = importlib.util.find_spec(old)
    installed("earlier_plugin", f"import {old}\n")
    plugins.load_plugins()
    found = importlib.import_module(old)
    homes = moved_paths.SPLIT.get(old, ()) or (moved_paths.MOVED[old],)
    assert [importlib.import_module(home).__name__ for home in homes] == list(homes)
    assert (there is None) == (old in moved_paths.MOVED)
    assert found.__name__ == moved_paths.MOVED.get(old, old)
    for home in homes if old in moved_paths.SPLIT else ():
        names = [n for n, one in vars(importlib.import_module(home)).items() if getattr(one, "__module__", "") == home]
        assert all(hasattr(found, name) for name in names if not name.startswith("_"))


def test_roles_share_a_model_unless_what_opens_depends_on_the_role():
    ports = model_ports.OpenModels(Settings(), MemoryArtifacts())
    shared = [ports.open(kind(provider="scripted")) for kind in (ActorConfig, StudentConfig)]
    apart = [ports.open(kind(provider="ollama")) for kind in (ActorConfig, StudentConfig)]
    assert shared[0] is shared[1]
    assert [model.name for model in apart] == ["ollama/qwen2.5:3b", "ollama/qwen2.5:7b"]


@pytest.mark.parametrize("name", ["tiny", "scripted"])
async def test_trainers_are_kept_and_closed(name):
    trainers = model_ports.OpenTrainers(Settings(), MemoryArtifacts())
    assert trainers.open(ActorConfig(provider=name)) is trainers.open(StudentConfig(provider=name))
    await trainers.close()


def test_what_cannot_be_trained_or_is_not_there_is_refused():
    with pytest.raises(ConfigError, match="cannot be trained"):
        model_ports.OpenTrainers(Settings(), MemoryArtifacts()).open(ActorConfig(provider="ollama"))
    with pytest.raises(ConfigError, match="Did you mean ngram"):
        model_ports.OpenEmbedders(Settings()).open("ngramm")
