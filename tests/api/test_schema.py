"""The description of the API is true: schemathesis asks every route with what it allows and with what it does not."""

import pytest
import schemathesis
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode


@pytest.mark.parametrize("examples", [2, pytest.param(15, marks=pytest.mark.slow)])
def test_each_route_does_what_its_description_says(app: FastAPI, examples: int) -> None:
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    wrong: dict[str, BaseException] = {}
    for operation in (found.ok() for found in schema.get_all_operations()):
        modes = GenerationMode if [*operation.iter_parameters()] or operation.body else [GenerationMode.POSITIVE]
        for mode in modes:  # where nothing is taken, nothing can be wrong

            @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
            @given(operation.as_strategy(generation_mode=mode))
            def ask(case: schemathesis.Case) -> None:
                if case.headers:
                    case.headers.pop("accept", None)  # a stream has no end
                case.call_and_validate()

            try:
                ask()
            except (AssertionError, BaseExceptionGroup) as error:
                wrong[f"{operation.label} {mode.value}"] = error
    assert wrong == {}


def test_every_route_has_a_name_and_says_what_it_does(client: TestClient) -> None:
    routes = [one for path in client.get("/openapi.json").json()["paths"].values() for one in path.values()]
    assert all(route["description"] and route["operationId"] for route in routes)
    names = [route["operationId"] for route in routes]
    assert len(names) == len({*names}) and all("_" in name for name in names)
