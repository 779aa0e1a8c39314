"""The pages and their twins: a page shows what its twin, the same address with ``.json``, sends."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, Response

from agent0.api.conditional import Tagged
from agent0.api.pages.rendering import page
from agent0.projections.base import Row

router = APIRouter(include_in_schema=False)


@dataclass
class Shown:
    """What a page shows: ``data`` is its twin, ``more`` what only its template needs."""

    data: Row
    at: int = 0
    more: Row = field(default_factory=dict)


def twin(path: str, template: str, *, tagged: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: what the function gives is the page at ``path`` and, with ``.json`` behind it, its twin."""

    def register(read: Callable[..., Any]) -> Callable[..., Any]:
        shown = Annotated[Shown, Depends(read)]

        def as_json(shown: shown) -> Row:
            return shown.data

        def as_page(request: Request, shown: shown) -> Response:
            return page(request, template, shown.at, **shown.data, **shown.more)

        dependencies = [Tagged] if tagged else []
        router.add_api_route(f"{path}.json", as_json, dependencies=dependencies, response_class=JSONResponse)
        router.add_api_route(path, as_page)
        return read

    return register
