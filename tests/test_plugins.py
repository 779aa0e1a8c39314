"""Strangers' modules under the entry point group: imported once, registered like our own, named where they break."""

import sys
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from agent0.assembly.runtime import model_ports, plugins, providers
from agent0.errors import ConfigError
from agent0.infra.models.scripted import Scripted
from agent0.settings import ActorConfig, Settings, StudentConfig
from tests.memory import MemoryArtifacts

PLUGIN = """
from agent0.assembly.runtime.providers import Provider, provider
from agent0.infra.models.scripted import Scripted
provider(Provider("stranger", lambda actor, settings, artifacts: Scripted(artifacts)))
"""


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
    for name in ("stranger_plugin", "broken_plugin"):
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


def test_weights_are_trained_in_the_precision_that_is_set_for_it(monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr(providers, "LoraTrainer", lambda *_, **options: opened.append(options["precision"]))
    monkeypatch.setattr(providers, "threads_of", lambda *_: 1)
    own = {"provider": "transformers", "model": str(tmp_path), "precision": "int8"}
    for trained in ("", "fp32"):
        model_ports.OpenTrainers(Settings(), MemoryArtifacts()).open(StudentConfig(**own, train_precision=trained))
    assert opened == ["int8", "fp32"]


def test_what_cannot_be_trained_or_is_not_there_is_refused():
    with pytest.raises(ConfigError, match="cannot be trained"):
        model_ports.OpenTrainers(Settings(), MemoryArtifacts()).open(ActorConfig(provider="ollama"))
    with pytest.raises(ConfigError, match="Did you mean ngram"):
        model_ports.OpenEmbedders(Settings()).open("ngramm")
