"""A run held from Python: ``python handle.py FOLDER``, or ``python handle.py http://127.0.0.1:8650 KEY``."""

import asyncio
import sys

import agent0

where, *key = sys.argv[1:]
place = agent0.connect(where, *key) if where.startswith("http") else agent0.open(where)
run = place.start("scripted", {"run.tasks": 4}, name="held", wait=False)
scores: list[agent0.Recorded] = []
watching = run.on(scores.append, "CheckpointEvaluated")
run.pause("a look")
print(run.wait(timeout=60), f"{run.progress.share:.0%}")
run.resume(wait=False)
print(len([event.task for event in run.events("TaskAccepted", follow=True)]), "tasks accepted")
print(run.wait(), asyncio.run(run.aio.status()), run.metrics("curve/validation").frame(), sep="\n")
watching.join()
print(len(scores), "scores")
run.fork(settings={"run.iterations": 9}, wait=False).cancel("enough")
try:
    run.metrics("curve/validaton")
except agent0.Agent0Error as error:
    print(error)
