"""Posts a comment on the pull request of this job, or replaces the one that it posted before.

``python3 -I comment.py FILE``, with TOKEN and what GitHub's runner sets. Where it may not (no pull request, a wrong
token, no permission ``pull-requests: write``), it says so in one line, and the comment becomes the job's summary.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any

MARK = "<!-- agent0 bench regression -->"
LONGEST = 65_000
"""Characters that GitHub takes."""
PAGES = 20
TIMEOUT_S = 30
REASONS = {
    401: "the token is wrong or has expired",
    403: "this job lacks the permission pull-requests: write, as jobs of forks do",
    404: "the token may not see this pull request",
}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirect)


def call(method: str, path: str, body: dict[str, str] | None = None) -> Any:
    """Call GitHub's API. Raises OSError, ValueError."""
    url = f"{os.environ.get('GITHUB_API_URL', 'https://api.github.com')}/repos/{os.environ['GITHUB_REPOSITORY']}{path}"
    headers = {"Accept": "application/vnd.github+json", "Authorization": f"Bearer {os.environ['TOKEN']}"}
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data, {**headers, "Content-Type": "application/json"}, method=method)
    with _opener.open(request, timeout=TIMEOUT_S) as answer:
        return json.load(answer)


def earlier(number: int) -> int | None:
    """The id of this job's earlier comment: one of a bot that begins with the mark."""
    for page in range(1, PAGES + 1):
        comments = call("GET", f"/issues/{number}/comments?per_page=100&page={page}")
        for comment in comments:
            if comment["user"]["type"] == "Bot" and comment["body"].startswith(MARK):
                return int(comment["id"])
        if len(comments) < 100:
            break
    return None


def post(text: str) -> str:
    """Post ``text``; returns why that was not possible, empty where it was."""
    try:
        event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
        number = int((event.get("pull_request") or {}).get("number") or 0)
        if not number or not os.environ.get("TOKEN"):
            return "there is no token" if number else "this job is not about a pull request"
        comment = earlier(number)
        if comment is None:
            call("POST", f"/issues/{number}/comments", {"body": text})
        else:
            call("PATCH", f"/issues/comments/{comment}", {"body": text})
    except urllib.error.HTTPError as error:
        return REASONS.get(error.code, f"GitHub answered {error.code}")
    except (OSError, HTTPException, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"GitHub's API cannot be used ({type(error).__name__})"
    return ""


def main() -> None:
    """Post, or write the job's summary; never ends the job."""
    text = Path(sys.argv[1]).read_text(encoding="utf-8")[:LONGEST]
    if reason := post(text):
        print(f"Agent0: no comment, since {reason}; it is in the job's summary.")
        with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as summary:
            summary.write(text)


if __name__ == "__main__":
    main()
