"""How likely texts are: what a model would have told of its own turn, whatever is asked beside them."""

import pytest

from agent0.errors import OperationError
from agent0.evaluation.benchmark_scores import chosen_by
from agent0.infra.engine.inference import Engine
from agent0.infra.engine.requests import TurnRequest
from agent0.ports.models import Likely, Sampling
from tests.engine.asking import user

TURNS = (user("What is 7*8?"),)


def test_a_text_is_as_likely_as_when_the_model_wrote_it(engine: Engine) -> None:
    (written,) = engine.generate([TurnRequest(TURNS, Sampling(0.0, 1.0, 12))])
    stopped = written.finish == "stop"
    own = sum(written.logprobs[:-1] if stopped else written.logprobs)
    (found,) = engine.likelihood(TURNS, [written.text])
    if found.tokens == len(written.ids) - stopped:  # the text is cut into the tokens it was written in
        assert found.logprob == pytest.approx(own, abs=1e-3)
    prefilled = engine.generate([TurnRequest(TURNS, Sampling(0.0, 1.0, 1), (), "5")])[0]
    one, two = engine.likelihood(TURNS, ["5", "5" + prefilled.text[1:]])
    if two.tokens == one.tokens + 1:
        assert two.logprob - one.logprob == pytest.approx(prefilled.logprobs[0], abs=1e-3)


def test_company_and_order_change_nothing(engine: Engine) -> None:
    texts = ["56", "five", "a much longer one that needs padding", "5", *(f"{n} apples" for n in range(20))]
    together = engine.likelihood(TURNS, texts)
    assert [(one.tokens > 0, one.characters) for one in together] == [(True, len(text)) for text in texts]
    alone = [engine.likelihood(TURNS, [text])[0].logprob for text in texts]
    assert [one.logprob for one in together] == pytest.approx(alone, abs=1e-3)
    assert all(one.logprob < 0 for one in together)


def test_what_has_no_likelihood_is_told(engine: Engine) -> None:
    for texts in (["", "x"], ["x" * 500]):
        with pytest.raises(OperationError):
            engine.likelihood(TURNS, texts)


def test_the_likeliest_by_both_ways() -> None:
    likely = [Likely(-3.0, 1, 1), Likely(-4.0, 4, 8), Likely(-4.0, 4, 8)]
    assert chosen_by(likely, 0) == {"acc": 1.0, "acc_norm": 0.0}
    assert chosen_by(likely, 1) == {"acc": 0.0, "acc_norm": 1.0}
    assert chosen_by(likely, 2) == {"acc": 0.0, "acc_norm": 0.0}
