"""How a browser brings a key: by a form, into a cookie that no script reads and no other site sends."""

from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from agent0.api.admission.guard import COOKIE, address_of
from agent0.api.context import Context
from agent0.api.pages.rendering import page
from agent0.api.problems import UnknownKeyError

router = APIRouter(include_in_schema=False)
KEPT_S = 30 * 86_400


@router.get("/login")
def ask(request: Request) -> Response:
    """Show the form that asks for a key."""
    return page(request, "login.html.jinja")


@router.post("/login")
async def take(request: Request, context: Context) -> Response:
    """Keep a key that is known in a cookie of the browser."""
    key_text = parse_qs((await request.body()).decode("utf-8", "replace")).get("key", [""])[0].strip()
    if not key_text or context.keys.find(key_text) is None:
        context.wrong_keys.take(key_text, address_of(request.scope))
        raise UnknownKeyError("That key is not known.", fix="Make one: agent0 api key add NAME")
    done = RedirectResponse("/runs", 303)
    done.set_cookie(
        COOKIE, key_text, max_age=KEPT_S, httponly=True, samesite="strict", secure=request.url.scheme == "https"
    )
    return done
