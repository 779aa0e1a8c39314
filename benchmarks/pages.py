"""What the server's pages cost over a run of 45,000 events, in CPU time of the whole answer, the least of several.

``python -m benchmarks.pages`` projects a told story into a folder of its own and asks the application without a socket.
"""

import tempfile
import time
from pathlib import Path

from fastapi.testclient import TestClient

from agent0.api.admission.keys import KeyFile
from agent0.api.app import create_app
from agent0.api.context import ApiContext
from agent0.api.past import PastTables
from agent0.settings import Settings
from tests.api.served import ADDRESS, stored
from tests.story import whole_run

SIZE = {"iterations": 20, "tasks": 60, "attempts": 8}
TIMES = 5
PATHS = (
    "/runs",
    "/runs/r1",
    "/runs/r1/iterations/10",
    "/runs/r1/tasks/t9-000",
    "/runs/r1/trajectories/t9-000-a0",
    "/models",
    "/models/r1/student-9",
    "/events/5000",
    "/config",
    "/admin",
    "/v1/events?after={last}&limit=100",
    "/v1/runs/r1/trajectories?after=t9-000-a0",
)
PAST = ("/runs/r1?at={last}", "/runs/r1?at={later}")
"""Asked once each: the second moment is built on from the first."""


def cpu_ms(client: TestClient, path: str, times: int) -> float:
    """Milliseconds of CPU until ``path`` was answered, the least of ``times``."""
    found = []
    for _ in range(times):
        before = time.process_time()
        answer = client.get(path)
        found.append(time.process_time() - before)
        assert answer.status_code == 200, (path, answer.text[:300])
    return 1000 * min(found)


def main() -> None:
    """Measure and print a table."""
    story = whole_run(**SIZE)
    with tempfile.TemporaryDirectory(prefix="agent0-bench-pages-") as folder:
        settings = Settings(home=stored(Path(folder), story))
        context = ApiContext(settings, KeyFile(settings.home), PastTables(settings))
        client = TestClient(create_app(context), base_url=ADDRESS, headers={"Accept": "text/html"})
        print(f"{len(story):,} events\n\n| address | CPU ms |\n|---|---|")
        places = {"last": len(story) - 200, "later": len(story) - 195}
        for path, times in (*((one, TIMES) for one in PATHS), *((one, 1) for one in PAST)):
            print(f"| {path} | {cpu_ms(client, path.format(**places), times):.0f} |", flush=True)
        context.past.close()


if __name__ == "__main__":
    main()
