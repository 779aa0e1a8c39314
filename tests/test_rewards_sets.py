"""Each set pays by its formula; the released code's seven defects show in ``released``, and not in the others."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.assembly.validate.rewards import check_rewards
from agent0.assembly.validate.run_config import check_names
from agent0.config.loading import load, profiles
from agent0.errors import ConfigError
from agent0.events.tasks import ResultVerified, RewardAssigned, TaskRejected
from agent0.events.values import Task, Trajectory, Vote
from agent0.infra.training.launch.recipe import Recipe
from agent0.rewards import rewards
from agent0.rewards.assign import assigned_rewards
from agent0.rewards.batch_similarity import bleu, clusters, distances, shares
from agent0.rewards.features import RewardContext, compute_features
from agent0.settings import RewardConfig, RunConfig
from agent0.state.reward_history import Moments, RewardHistory, with_receipt
from agent0.state.run_state import AttemptState, RunState, TaskState
from agent0.training import selection
from tests import released

ROOT = Path(__file__).parents[1]
QUESTION = "What is 40+2?"


def task(question: str = QUESTION) -> Task:
    return Task(question=question, domain="math", family="arithmetic", level=1, canonical=question)


def attempts(answers: list[str | None], right: str | None = "42", calls: int = 0) -> dict[str, AttemptState]:
    return {
        f"t0-000-a{n}": AttemptState(
            n,
            answer=a,
            attempted=True,
            tool_ok=calls,
            verified=True,
            judge="v",
            correct=None if right is None else a == right,
        )
        for n, a in enumerate(answers)
    }


def paid(
    rules: RewardConfig,
    answers: list[str | None],
    text: str = "",
    questions: tuple[str, ...] = (QUESTION,),
    **more: Any,
) -> RewardAssigned:
    """The teacher's receipt for the first of a batch of ``questions``; empty ones are no task."""
    batch = {}
    for n, question in enumerate(questions):
        held = TaskState(n, "math", "arithmetic", 1, proposed=True, proposal=task(question) if question else None)
        batch[f"t0-{n:03d}"] = held
    first = batch["t0-000"]
    vars(first).update(text=text, accepted=True, novelty=1.0, attempts=attempts(answers, **more))
    config = RunConfig(tasks=len(questions), attempts=max(1, len(answers)), rewards=rules)
    run = RunState("r", 9, config, "", iteration=0, tasks=batch, just_settled="t0-000")
    if first.proposal is None:
        vars(first).update(accepted=False, rejected=True, attempts={})
        refused = TaskRejected(task="t0-000", iteration=0, slot=0, reason="malformed")
        return assigned_rewards(refused, run)[0]
    last = list(first.attempts)[-1]
    verdict = ResultVerified(task="t0-000", attempt=last, iteration=0, correct=None, verifier="v", reason="")
    return assigned_rewards(verdict, run)[-1]


HALF: list[str | None] = ["42", "42", "1", "2"]


def test_bleu_is_that_of_the_reference_implementation() -> None:
    """Numbers by nltk 3.9: sentence_bleu with SmoothingFunction().method1."""
    words = "what is the sum of {} and 4 ?".format
    assert bleu(words(3).split(), words(5).split()) == pytest.approx(0.5969491792019646, abs=1e-12)
    assert bleu(["a", "b", "c"], ["a", "b", "c", "d"]) == pytest.approx(0.3976353643835253, abs=1e-12)
    assert bleu(["a"], []) == bleu([], ["a"]) == bleu(["a"], ["b"]) == 0
    same = ["one", "two", "three", "four", "five"]
    assert bleu(same, same) == pytest.approx(1.0)


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=7), min_size=1, max_size=9), st.floats(0.05, 0.95))
def test_clusters_are_those_of_agglomerative_average_linkage(questions: list[list[str]], cut: float) -> None:
    apart = distances(questions)
    found, held = clusters(apart, cut), [[n] for n in range(len(apart))]
    while len(held) > 1:
        mean = {
            (a, b): sum(apart[x][y] for x in held[a] for y in held[b]) / len(held[a]) / len(held[b])
            for a in range(len(held))
            for b in range(a)
        }
        near = min(mean, key=lambda pair: mean[pair])
        ties = sorted(mean.values())
        if len(ties) > 1 and ties[1] - ties[0] < 1e-9:
            return  # of equals, either may come first
        if mean[near] >= cut:
            break
        held[near[1]] += held.pop(near[0])
    assert {frozenset(group) for group in held} == {
        frozenset(n for n in range(len(found)) if found[n] == label) for label in found
    }


@pytest.mark.parametrize(
    ("answers", "calls", "questions", "total"),
    [
        (HALF, 0, (QUESTION,), 0.0),  # max(0, 1 + 0 - 1): alone it is all of its batch
        (HALF, 0, (QUESTION, "other words entirely"), 1 - 0.5),
        (HALF, 2, (QUESTION, "other words entirely"), 1 + 0.6 * 0.25 * 2 - 0.5),
        (HALF, 9, (QUESTION, "other words entirely"), 1 + 0.6 * 1 - 0.5),  # C = 4
        (["42", "42", "42", "1"], 0, (QUESTION, "b", "c", "d"), 0.5 - 0.25),
        (["42"] * 4, 0, (QUESTION, "b", "c", "d"), 0.0),  # not below 0
        ([], 0, ("", "b"), 0.0),  # R_format
    ],
)
def test_the_papers_teacher(answers: list[str | None], calls: int, questions: tuple[str, ...], total: float) -> None:
    assert paid(RewardConfig(set="paper"), answers, questions=questions, calls=calls).total == pytest.approx(total)


def test_the_released_teacher() -> None:
    rules = RewardConfig(set="released")
    boxed = "\\boxed{7}"
    found = paid(rules, ["7", "7", "1", "2"], f"{boxed} ```output ```output", (QUESTION, "b"))
    assert found.total == pytest.approx(0.5 - 0.5 + 0.1)
    assert paid(rules, [], questions=("", "b")).total == pytest.approx(-1 - 0.5)
    assert paid(rules, [*"7123456890"], boxed, (QUESTION, "b")).total == pytest.approx(0 - 0.5)  # not above 0.1


def test_defect_1_an_answer_is_cut_to_its_last_character() -> None:
    cut = paid(RewardConfig(set="released"), HALF, "\\boxed{42}", (QUESTION, "b"))
    assert {p.name: p.value for p in cut.parts}["difficulty"] == 0.0  # half agree on 42, and are compared with 2
    short = paid(RewardConfig(set="released"), ["2", "2", "1", "3"], "\\boxed{42}", (QUESTION, "b"))
    assert {p.name: p.value for p in short.parts}["difficulty"] == 0.5
    for name in ("paper", "agent0"):
        rules = RewardConfig(set=name)
        (value,) = [p.value for p in paid(rules, HALF, "\\boxed{42}", (QUESTION, "b")).parts if p.name == "uncertainty"]
        assert value == 1.0


def test_defect_2_tool_calls_are_counted_in_the_teachers_text() -> None:
    def worth(name: str, text: str, calls: int) -> float:
        part = "tool_demand" if name == "agent0" else "tools"
        found = paid(RewardConfig(set=name), HALF, text, (QUESTION, "b"), calls=calls)
        return next(p.value or 0.0 for p in found.parts if p.name == part)

    marks = "```output\n" * 3
    assert worth("released", marks, 0) == pytest.approx(0.15) and worth("released", "", 3) == 0
    assert worth("paper", marks, 0) == 0 and worth("paper", "", 3) == pytest.approx(0.75)
    assert worth("agent0", marks, 0) == 0


def deeds(rate: float) -> list[Any]:
    way = Trajectory(token_ids=(1, 2, 3), mask=(0, 1, 1), logprobs=(0.0, -0.5, -0.25))
    made = selection.ScoredTrajectory  # type: ignore[attr-defined]
    return [made(f"e{rate}-{n}", f"t{rate}", "me", way, float(n % 2), rate, n % 2 == 1) for n in range(4)]


def test_defect_3_the_advantage_is_called_without_the_score() -> None:
    data = {"token_level_rewards": [0.0, 1.0], "response_mask": [1, 1], "uid": ["a", "a"], "score": [0.5, 0.5]}
    with pytest.raises(TypeError, match="score"):
        released.compute_advantage("adpo", data)
    rates = {rate: _samples(rate)[1].advantage for rate in (0.3, 0.5, 0.8)}
    assert rates[0.3] == pytest.approx(0.6 * rates[0.8]) and rates[0.3] < rates[0.5] < rates[0.8]


def _samples(rate: float) -> Any:
    config = RunConfig.model_validate({"training": {"student": {"objective": "adpo"}}})
    return selection.select("student", deeds(rate), [], author="me", config=config, seed=0).samples


def test_defect_4_the_dynamic_clip_is_never_used() -> None:
    theirs = released.policy_loss(released.SCRIPT)
    assert theirs is released.vanilla and theirs(1.4, 1.0, 0.3) == theirs(1.4, 1.0, 0.8)
    assert released.adpo(1.4, 1.0, 0.3) != released.adpo(1.4, 1.0, 0.8)
    assert _samples(0.3)[0].clip_high > _samples(0.5)[0].clip_high > _samples(0.8)[0].clip_high


def test_defect_5_the_share_never_reaches_the_loss() -> None:
    assert {released.score_of(released.uploaded("q", "a", p)) for p in (0.3, 0.5, 0.8)} == {0.6}
    assert len({_loss(rate) for rate in (0.3, 0.5, 0.8)}) == 3


def _loss(rate: float) -> float:
    import torch

    from agent0.training.objectives import MinibatchRows, objectives

    samples = _samples(rate)
    told = {name: torch.tensor([getattr(s, name) for s in samples]) for name in ("advantage", "weight", "clip_high")}
    behaviour = torch.tensor([s.trajectory.logprobs for s in samples])
    mask = torch.tensor([s.trajectory.mask for s in samples])
    rows = MinibatchRows(behaviour + 0.4 * mask, behaviour, mask, **told)
    return float(objectives()["adpo"].loss(rows, Recipe(clip_low=0.2)).loss)


def test_defect_6_a_module_that_is_imported_is_absent() -> None:
    rooms = ("agent0", "events", "handlers", "infra", "projections")

    def stranger(module: str) -> bool:
        return module.partition(".")[0] not in (*rooms, "evaluation")

    assert released.unresolved(released.TREE, stranger) == ["evaluation.datasets_loader"]
    files = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    paths = {path: path.relative_to(ROOT) for path in files}
    below = {path: place if place.parts[0] == "agent0" else "agent0" / place for path, place in paths.items()}
    ours = {str(below[path]): path.read_text(encoding="utf-8") for path in files}
    assert len(ours) > 300 and released.unresolved(ours, stranger) == []


def test_defect_7_a_configuration_that_is_read_is_absent() -> None:
    assert released.unread(released.TREE) == ["verl/trainer/config/data/legacy_data.yaml"]
    for profile in profiles():
        check_names(load(profile, {}, {}).run)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"set": "papre"}, "Did you mean paper"),
        ({"set": "agent1x"}, "Known: agent0, documenting, paper, ref"),
        ({"set": "paper", "weights": {"novelty": 1.0}}, "there is no reward 'novelty'"),
        ({"weights": {"novelti": 1.0}}, "Did you mean novelty"),
        ({"calibrator": {"signal": "mean_tokn"}}, "Did you mean mean_token"),
        ({"calibrator": {"signal": "answer", "method": "platt", "parameters": [1.0]}}, "does not have 1 parameters"),
    ],
)
def test_rules_that_name_what_is_not_there_are_refused_at_every_door(rules: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_rewards(RewardConfig.model_validate(rules), "here")
    held = load("scripted", {}, {}).run
    with pytest.raises(ConfigError, match=words):
        check_names(held.model_copy(update={"rewards": RewardConfig.model_validate(rules)}))


def test_nothing_is_paid_for_difficulty_that_nothing_verified() -> None:
    """A question that splits the student is no frontier where nobody knows what is right."""
    found = paid(RewardConfig(), ["A", "A", "B", "C"], right=None)
    assert {p.name: p.value for p in found.parts}["uncertainty"] is None


SIGNALS = {"answer": 0.5, "own_tokens": 0.8}


def test_doubt_is_read_from_answers_tokens_votes_and_a_calibrator() -> None:
    held = TaskState(0, "math", "f", 1, attempts=attempts(["1", "1", "2", None]))
    for place, attempt in enumerate(held.attempts.values()):
        votes = (Vote(check="judge", correct=place == 0), Vote(check="panel", correct=None))
        vars(attempt).update(signals=SIGNALS, votes=votes if place < 2 else ())
    plan = {"signal": "answer+own_tokens", "method": "logistic", "parameters": (0.0, 1.0, 0.0, 0.0, 0.0)}
    rules = RewardConfig.model_validate({"calibrator": plan})
    run = RunState("r", 1, RunConfig(), "", tasks={"t": held})
    names = frozenset({"answer_margin", "answer_confidence", "token_entropy", "fused_confidence", "critique"})
    told = compute_features("teacher", names, RewardContext(run, rules, held))
    assert told == pytest.approx(
        {
            "answer_margin": 0.25,
            "answer_confidence": 0.5,
            "critique": 0.5,
            "fused_confidence": 0.5,
            "token_entropy": 0.2231435513142097,
        }
    )
    names = frozenset({"narrow_margin", "answer_doubt", "token_entropy", "fused_doubt", "critique_doubt"})
    assert {name: rewards("teacher")[name].score(told) for name in names} == pytest.approx(
        {
            "narrow_margin": 0.75,
            "answer_doubt": 1.0,
            "token_entropy": 0.2231435513142097,
            "fused_doubt": 1.0,
            "critique_doubt": 1.0,
        }
    )
    bare = RewardConfig()
    assert compute_features("teacher", frozenset({"fused_confidence"}), RewardContext(run, bare, held)) == {
        "fused_confidence": None
    }


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_earlier_receipts_are_summed_in_any_order(totals: list[float], rng: Any) -> None:
    told = [
        RewardAssigned(
            task="t",
            iteration=0,
            role="teacher",
            set="agent0",
            parts=(),
            total=0.0,
            checkpoint="base",
            facts={"raw_total": value, "skill": "s"},
        )
        for value in totals
    ]
    mixed = rng.sample(told, len(told))
    ledgers = []
    for order in (told, mixed):
        ledger = None
        for each in order:
            ledger = with_receipt(ledger, each)
        assert ledger is not None and ledger.earned == {} == ledger.skills
        ledgers.append(ledger.at(1))
    assert ledgers[0] == ledgers[1] == ledgers[0].at(0)
    moments = ledgers[0].earned["teacher"]
    mean = sum(totals) / len(totals)
    assert moments.mean == pytest.approx(mean, abs=1e-8)
    deviation = (sum((x - mean) ** 2 for x in totals) / len(totals)) ** 0.5
    assert moments.deviation == pytest.approx(deviation, abs=1e-4)
    assert ledgers[0].skills == {"s": len(totals)}


def test_totals_are_normalised_by_what_came_before_and_kept_within_bounds() -> None:
    rules = RewardConfig(normalize=True, clip=0.5)
    first = paid(rules, HALF)
    assert first.facts["earned"] == 0 and first.total == 0.5 < first.facts["raw_total"]
    run = RunState("r", 9, RunConfig(rewards=rules), "", iteration=1)
    units = 10**9
    earned = {"teacher": Moments(2, 2 * units, 2 * units * units + units * units // 2)}
    held = TaskState(0, "math", "f", 1, accepted=True, novelty=0.0, proposal=task(), attempts=attempts(HALF))
    run = RunState(
        "r",
        9,
        RunConfig(rewards=RewardConfig(normalize=True)),
        "",
        iteration=1,
        tasks={"t": held},
        just_settled="t",
        ledger=RewardHistory(1, earned),
    )
    verdict = ResultVerified(task="t", attempt="t0-000-a3", iteration=1, correct=None, verifier="v", reason="")
    receipt_ = assigned_rewards(verdict, run)[-1]
    assert (receipt_.facts["earned"], receipt_.facts["earned_mean"], receipt_.facts["earned_deviation"]) == (
        2,
        1.0,
        0.5,
    )
    assert receipt_.total == pytest.approx((receipt_.facts["raw_total"] - 1.0) / 0.5)


def test_the_share_of_a_batch_is_that_of_its_cluster() -> None:
    batch = ("what is the sum of 3 and 4 ?", "what is the sum of 5 and 4 ?", "sort these words", "")
    assert shares(batch) == (0.5, 0.5, 0.25, 0.25)
