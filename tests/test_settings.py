"""Settings: who wins, what is refused and in which words, and that no secret is ever told."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from pydantic import SecretStr

from agent0.assembly.validate.run_config import check_names
from agent0.config.loading import DEFAULT_PROFILE, load, profiles, public, resolve
from agent0.config.setting_entries import fields, leaves
from agent0.errors import ConfigError, DependencyError, bare_url
from agent0.settings import RunConfig, Settings

LAYERS = ("flag", "environment", ".env", "agent0.toml [profile]", "agent0.toml", "user", "profile")
"""Highest first."""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty working folder and an empty home of the user."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def lay(present: dict[str, int], place: Path):
    """Write each present layer with its own seed; what ``resolve`` is to be called with."""
    for old in (".env", "agent0.toml", "config/agent0/config.toml"):
        (place / old).unlink(missing_ok=True)
    local = f"[run]\nseed = {present['agent0.toml']}\n" if "agent0.toml" in present else ""
    named = present.get("agent0.toml [profile]")
    local += f"[profile.mine.run]\nseed = {named}\n" if named is not None else ""
    write(place / "agent0.toml", local)
    if "user" in present:
        write(place / "config/agent0/config.toml", f"[run]\nseed = {present['user']}\n")
    if ".env" in present:
        write(place / ".env", f"OTHER=1\nAGENT0_RUN__SEED={present['.env']}\n")
    own = f"seed = {present['profile']}\n" if "profile" in present else ""
    profile = write(place / "mine.toml", f"[run]\n{own}iterations = 3\n")
    if named is not None:
        profile = Path("mine.toml")
    env = {"AGENT0_RUN__SEED": str(present["environment"])} if "environment" in present else {}
    return profile, ({"run.seed": str(present["flag"])} if "flag" in present else {}), env


@examples(max_examples=30, deadline=None)
@given(st.sets(st.sampled_from(LAYERS)))
def test_the_highest_layer_wins_and_is_named(tmp_path_factory, chosen):
    place = tmp_path_factory.mktemp("layers")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("XDG_CONFIG_HOME", str(place / "config"))
        # [profile.X] is chosen by X, a file by its path: where the table is present, X is the file's stem.
        present = {name: number + 100 for number, name in enumerate(LAYERS) if name in chosen}
        profile, overrides, env = lay(present, place)
        if "agent0.toml [profile]" in present:
            profile = Path("mine")
            present.pop("profile", None)
        loaded = resolve(profile, overrides, env)
    winner = next((name for name in LAYERS if name in present), None)
    assert loaded.settings.run.seed == (present[winner] if winner else 0)
    assert loaded.settings.profile == "mine"
    marks = {
        "flag": "flag run.seed",
        "environment": "environment AGENT0_RUN__SEED",
        ".env": ".env:2",
        "agent0.toml [profile]": f"agent0.toml:{4 if 'agent0.toml' in present else 2}",
        "agent0.toml": "agent0.toml:2",
        "user": "config.toml:2",
        "profile": "mine.toml:2",
    }
    origin = {key: where for key, _, where in loaded.rows()}["run.seed"]
    assert origin.endswith(marks[winner] if winner else "default")


def test_the_default_profile_is_the_one_that_needs_nothing():
    assert load(env={}).profile == DEFAULT_PROFILE == "tiny"
    assert load(env={"AGENT0_PROFILE": "scripted"}).profile == "scripted"
    assert load("scripted", env={"AGENT0_PROFILE": "tiny"}).profile == "scripted"


def test_a_profile_can_be_chosen_in_the_working_folder(place):
    write(place / "agent0.toml", 'profile = "scripted"\n')
    assert load(env={}).profile == "scripted"


@pytest.mark.parametrize("name", profiles())
def test_each_packaged_profile_is_valid(name):
    held = load(name, env={})
    check_names(held.run)
    assert held.profile == name


SECRET_KEYS = (
    "nats.password",
    "web.search_key",
    "telemetry.webhook_secret",
    "telemetry.slack_url",
    "telemetry.discord_url",
)


@pytest.mark.parametrize("key", [key for key, _ in fields() if key != "profile"])
def test_every_setting_can_be_given_as_text(key):
    default = dict(leaves(Settings().model_dump(mode="json")))[key]
    name = "AGENT0_" + key.upper().replace(".", "__")
    if key in SECRET_KEYS:
        group, _, word = key.partition(".")
        assert getattr(getattr(load("scripted", env={name: "s"}), group), word) == SecretStr("s")
        return
    text = default if isinstance(default, str) else json.dumps(default) if default is not None else ""
    given_by_flag, given_by_variable = load("scripted", {key: text}, {}), load("scripted", env={name: text})
    assert given_by_flag == given_by_variable
    got = dict(leaves(given_by_flag.model_dump(mode="json")))[key]
    assert got == default or key == "home"


def test_lists_are_read_by_commas_and_as_json():
    assert load("scripted", {"run.student.tools": "python, shell"}, {}).run.student.tools == ("python", "shell")
    assert load("scripted", {"run.curriculum.levels": "[1,4]"}, {}).run.curriculum.levels == (1, 4)
    assert load("scripted", {"run.rewards.weights.novelty": "0.5"}, {}).run.rewards.weights == {"novelty": 0.5}
    assert load("scripted", {"run.rewards.weights": '{"novelty": 2}'}, {}).run.rewards.weights == {"novelty": 2}


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("run.sed", "run.seed"),
        ("iterations", "run.iterations"),
        ("run.student.temprature", "run.student.temperature"),
        ("nats.urll", "nats.url"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(key, near):
    with pytest.raises(ConfigError, match=f"Did you mean {near}") as error:
        load("scripted", {key: "1"}, {})
    assert key in str(error.value)
    assert error.value.kind.exit_code == 2


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        ({'router.prices."openai/gpt-x.1".input': "3", 'router.prices."openai/gpt-x.1".output': "4"}, "openai/gpt-x.1"),
        ({"router.prices.openai/gpt-x.1.input": "3", "router.prices.openai/gpt-x.1.output": "4"}, "openai/gpt-x.1"),
        ({"router.prices.gpt": '{"input": 3, "output": 4}'}, "gpt"),
        ({"router.prices.'gpt.1'": '{"input": 3, "output": 4}'}, "gpt.1"),
    ],
)
def test_an_entry_of_a_table_is_named_with_or_without_quotation_marks(overrides, name):
    prices = load(None, overrides, {}).router.prices
    assert list(prices) == [name]
    assert (prices[name].input, prices[name].output) == (3, 4)


def test_a_price_without_its_other_half_is_named():
    with pytest.raises(ConfigError, match=r"router.prices.openai/gpt-4.1.output is missing") as refused:
        load(None, {"router.prices.openai/gpt-4.1.input": "3"}, {})
    assert "--set router.prices.openai/gpt-4.1.output=" in refused.value.fix


def test_an_unknown_variable_is_refused(place):
    with pytest.raises(ConfigError, match=r"environment AGENT0_RUN__SEEED.*run\.seed"):
        load("scripted", env={"AGENT0_RUN__SEEED": "1"})
    write(place / ".env", "AGENT0_HOMEE=/tmp\n")
    with pytest.raises(ConfigError, match=r"\.env:1.*home"):
        load("scripted", env={})


def test_variables_that_are_no_settings_are_left_alone():
    assert load("scripted", env={"AGENT0_DEBUG": "1", "PATH": "/bin", "_AGENT0_COMPLETE": "x"})


@pytest.mark.parametrize("value", ["ten", "-1", "1.5", ""])
def test_a_value_that_does_not_fit_names_key_value_and_place(place, value):
    file = write(place / "mine.toml", f"# mine\n[run]\n\niterations = {json.dumps(value)}\n")
    with pytest.raises(ConfigError) as error:
        load(file, env={})
    assert "run.iterations" in str(error.value)
    assert repr(value) in str(error.value)
    assert "mine.toml:4" in str(error.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("run.seed", "99999999999999999999999"),
        ("run.seed", "-1"),
        ("run.seed", str(2**63)),
        ("run.evaluation.seed", str(2**63)),
        ("run.student.temperature", "inf"),
        ("run.student.timeout_s", "nan"),
        ("run.training.student.lr", "inf"),
        ("run.rewards.weights.novelty", "inf"),
        ("run.curriculum.band", "[0.1, 1e999]"),
    ],
)
def test_a_number_that_no_table_holds_is_refused(key, value):
    with pytest.raises(ConfigError, match=key):
        load("scripted", {key: value}, {})


def test_every_whole_number_among_the_settings_has_an_end():
    endless = [
        key
        for key, field in fields()
        if field.annotation is int and not any(hasattr(bound, "le") for bound in field.metadata)
    ]
    assert not endless
    assert load("scripted", {"run.seed": str(2**63 - 1)}, {}).run.seed == 2**63 - 1


@pytest.mark.parametrize("url", ["nonsense", "http://host:1", "nats://", "nats://a b", "nats://host:port", "::::"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(ConfigError, match=r"nats\.url.*AGENT0_NATS_URL.*no address"):
        load("scripted", env={"AGENT0_NATS_URL": url})


@pytest.mark.parametrize("url", ["nats://h", "tls://u:p%40@a.b:4222", "nats://a:1, nats://[::1]:2/", "wss://t@h:443"])
def test_addresses_of_servers(url):
    assert load("scripted", env={"AGENT0_NATS_URL": url}).nats.url == url


SECRETS = ("http://user:hunter2@host", "u:hunter2@host", "nats://u:hun ter2hunter2@h", "nats://u:'hunter2@h")


@pytest.mark.parametrize("url", SECRETS)
@pytest.mark.parametrize("name", ["AGENT0_NATS_URL", "AGENT0_WEB__SEARCH_URL"])
def test_a_refused_address_does_not_tell_its_password(name, url):
    with pytest.raises(ConfigError) as told:
        load("scripted", env={name: url})
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize(
    "url", ["u:hunter2@host", "http://u:hun ter2hunter2@h", "http://u:'\"hunter2@h", "http://h?key=hunter2"]
)
def test_an_address_of_a_model_server_is_refused_or_shown_without_its_password(url):
    try:
        loaded = load("scripted", env={"AGENT0_MODELS__OLLAMA_URL": url})
    except ConfigError as told:
        assert "hunter2" not in str(told)
    else:
        assert loaded.models.ollama_url == url and "hunter2" not in str(public(loaded))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nats://u:hunter2@a:1,nats://b:2, tls://v:hunter2@c/", "nats://a:1,nats://b:2, tls://c/"),
        ("at http://u:hunter2,#/x@y@h:1/p it said no", "at http://h:1/p it said no"),
        ("ws://hunter2@h", "ws://h"),
        ('nats://u:hun\'ter2hunter2@h said "no"', 'nats://h said "no"'),
        ("write to a@b.c about http://h/x", "write to a@b.c about http://h/x"),
    ],
)
def test_an_address_is_shown_without_user_and_password(text, shown):
    assert bare_url(text) == shown
    error = DependencyError(text, text, text)
    assert "hunter2" not in str(error) + error.what + error.why + error.fix + error.dependency and shown in str(error)


def test_a_home_that_cannot_be_a_folder_is_refused(place):
    file = write(place / "file", "")
    for home in (file, file / "below", place / ("x" * 300)):
        with pytest.raises(ConfigError, match="AGENT0_HOME"):
            load("scripted", env={"AGENT0_HOME": str(home)})
    assert load("scripted", env={"AGENT0_HOME": str(place / "new" / "deep")}).home == place / "new" / "deep"


def test_broken_files_are_named(place):
    file = write(place / "mine.toml", "[run\n")
    with pytest.raises(ConfigError, match=r"mine\.toml cannot be read as TOML"):
        load(file, env={})
    write(file, "a = " + "[" * 100_000)
    with pytest.raises(ConfigError, match=r"mine\.toml cannot be read as TOML"):
        load(file, env={})
    write(place / ".env", "AGENT0_HOME=/x\n= what\n")
    with pytest.raises(ConfigError, match=r"\.env:2"):
        load("scripted", env={})


@pytest.mark.parametrize("name", ["tinny", "no/such", "../configs/tiny", "missing.toml", ""])
def test_an_unknown_profile_is_refused(name):
    if not name:
        assert load(name, env={}).profile == DEFAULT_PROFILE
        return
    with pytest.raises(ConfigError, match="There is no profile"):
        load(name, env={})


def test_home_comes_from_its_variable_or_the_platform(place):
    assert load(env={"AGENT0_HOME": "somewhere"}).home == place / "somewhere"
    assert load(env={}).home == place / "data" / "agent0"


def test_no_secret_is_told(place):
    env = {"AGENT0_NATS__PASSWORD": "hunter2", "AGENT0_NATS_URL": "nats://bob:hunter2@host:4222,nats://b:hunter2@c"}
    loaded = resolve("scripted", env=env)
    assert loaded.settings.nats.password.get_secret_value() == "hunter2"
    told = json.dumps(public(loaded.settings)) + str(loaded.rows()) + repr(loaded.settings.nats.password)
    told += json.dumps(loaded.settings.run.to_record())
    assert "hunter2" not in told
    assert public(loaded.settings)["nats"]["url"] == "nats://host:4222,nats://c"


def test_a_secret_cannot_be_a_flag_nor_shown_in_an_error(place):
    with pytest.raises(ConfigError, match="AGENT0_NATS__PASSWORD") as error:
        load("scripted", {"nats.password": "hunter2"}, {})
    assert "hunter2" not in str(error.value)
    file = write(place / "mine.toml", "[nats]\npassword = 12345\n")
    with pytest.raises(ConfigError, match=r"nats\.password") as error:
        load(file, env={})
    assert "12345" not in str(error.value)


@given(st.text("abcé:/@.,-", max_size=30))
def test_addresses_lose_their_credentials_and_nothing_else(host):
    bare = bare_url(f"nats://user:secret@{host.replace('@', '').replace(',', '').replace('/', '')}")
    assert "secret" not in bare
    assert "@" not in bare


def test_the_configurations_digest_covers_the_run_and_nothing_else():
    base = load("scripted", env={})
    same = load("scripted", {"handlers.ack_wait_s": "5", "home": "/elsewhere", "sandbox.workers": "7"}, {})
    assert base.run.to_record() == same.run.to_record()
    others = [{"run.seed": "1"}, {"run.student.max_calls": "1"}, {"run.rewards.weights.novelty": "0"}]
    digests = {load("scripted", one, {}).run.to_record()[1] for one in ({}, *others)}
    assert len(digests) == len(others) + 1


def test_what_is_stored_in_the_log_is_the_run_again():
    held = load("tiny", env={}).run
    plain, _ = held.to_record()
    assert RunConfig.model_validate(json.loads(json.dumps(plain))) == held


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("run.student.provider", "tinny", "Did you mean tiny"),
        ("run.student.prompts", "long", "compact"),
        ("run.student.tools", "pyton", "python"),
        ("run.curriculum.domains", "math,alchemy", "logic"),
        ("run.curriculum.embedder", "minilmm", "minilm"),
        ("run.rewards.weights.novlty", "1", "novelty"),
        ("run.curriculum.band", "0.9,0.1", "lower"),
        ("run.teacher.provider", "ollama", "cannot be trained"),
        ("run.evaluation.validation", "1000000", "held-out"),
    ],
)
def test_names_that_do_not_exist_are_refused_before_a_run_begins(key, value, said):
    with pytest.raises(ConfigError, match=said):
        check_names(load("scripted", {key: value}, {}).run)
