"""Small office jobs, generated from a seed: a table, nested orders, a database, a log in the work folder. The question
does not hold the answer, so they measure tool use: without tools they cannot be solved."""

import configparser
import csv
import io
import json
import random
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from agent0.evaluation.benchmarks import Benchmark, Item, benchmark
from agent0.evaluation.benchmarks.seeded import exactly, seeded

_REGIONS = ("north", "south", "east", "west")
_NAMES = ("Ada", "Bruno", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kaya", "Luis")
_GOODS = ("bolt", "cable", "drill", "filter", "gasket", "hinge", "lever", "motor", "pump", "valve")
_SERVICES = ("billing", "search", "upload", "mail", "login")


def _item(question: str, gold: object, files: Mapping[str, str | bytes]) -> Item:
    prompt = f"Your work folder holds {' and '.join(sorted(files))}. {question} Put only the answer into \\boxed{{}}."
    kept = {name: data.encode() if isinstance(data, str) else data for name, data in files.items()}
    return Item("", prompt, str(gold), f"\\boxed{{{gold}}}", files=kept)


def _number(rng: random.Random) -> int:
    """Part of a file's name, so that no two questions are the same."""
    return rng.randint(1000, 9999)


def _cents(amount: int) -> str:
    return f"{amount // 100}.{amount % 100:02d}"


def table(rng: random.Random) -> Item:
    """Sum a column of a CSV file with quoted fields under two conditions."""
    rows = [
        (n, f"2025-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}", rng.choice(_REGIONS),
         f"{rng.choice(_GOODS)}, {rng.choice(('small', 'large'))}", rng.randint(100, 99_999), rng.random() < 0.15)
        for n in range(1, rng.randint(120, 240))
    ]  # fmt: skip
    region, month = rng.choice(_REGIONS), rng.randint(1, 12)
    out = io.StringIO()
    sheet = csv.writer(out, lineterminator="\n")
    sheet.writerow(["id", "date", "region", "article", "amount", "refunded"])
    sheet.writerows(
        [n, day, where, what, _cents(amount), "yes" if back else "no"] for n, day, where, what, amount, back in rows
    )
    counted = [
        amount for _, day, where, _, amount, back in rows if where == region and not back and int(day[5:7]) <= month
    ]
    question = (
        f"What is the sum of amount over rows of region {region} in months 1 to {month} of 2025 that were not refunded?"
    )
    return _item(question, _cents(sum(counted)), {f"sales-{_number(rng)}.csv": out.getvalue()})


def tree(rng: random.Random) -> Item:
    """Find in nested JSON the lines within orders within customers."""
    article, gold, customers = rng.choice(_GOODS), 0, []
    for customer in rng.sample(_NAMES, rng.randint(6, 10)):
        orders = []
        for _ in range(rng.randint(2, 9)):
            state = rng.choice(("shipped", "open", "cancelled"))
            lines = [(rng.choice(_GOODS), rng.randint(1, 30)) for _ in range(rng.randint(1, 5))]
            positions = [{"article": name, "count": count} for name, count in lines]
            orders.append({"number": rng.randint(1000, 9999), "state": state, "lines": positions})
            gold += sum(count for name, count in lines if name == article and state != "cancelled")
        customers.append({"name": customer, "orders": orders})
    question = f"How many pieces of article {article} are in orders that are not cancelled, over all customers?"
    return _item(question, gold, {f"orders-{_number(rng)}.json": json.dumps({"customers": customers}, indent=1)})


def database(rng: random.Random) -> Item:
    """Join two tables of an SQLite file to answer a question."""
    people = list(enumerate(rng.sample(_NAMES, 10), 1))
    loans = [(rng.randint(1, 10), rng.choice(_GOODS), rng.randint(1, 40)) for _ in range(rng.randint(150, 300))]
    least = rng.randint(5, 25)
    totals = Counter[int]()
    for person, _, days in loans:
        totals[person] += days if days >= least else 0
    person = min(totals, key=lambda borrower: (-totals[borrower], dict(people)[borrower]))
    question = (
        "Table loans refers to table people by person. Whose loans that lasted at least "
        f"{least} days add up to the most days? Of several, the first by name."
    )
    return _item(question, dict(people)[person], {f"tools-{_number(rng)}.db": _database(people, loans)})


def _database(people: Sequence[tuple[int, str]], loans: Sequence[tuple[int, str, int]]) -> bytes:
    """The file of a database that was made in memory; the version of SQLite that made it is wiped out of it."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(
            "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT);"
            "CREATE TABLE loans (person INTEGER REFERENCES people, tool TEXT, days INTEGER);"
        )
        connection.executemany("INSERT INTO people VALUES (?, ?)", people)
        connection.executemany("INSERT INTO loans VALUES (?, ?, ?)", loans)
        connection.commit()
        data = connection.serialize()
    finally:
        connection.close()
    return data[:92] + bytes(8) + data[100:]


def log(rng: random.Random) -> Item:
    """Count lines of several services and levels in a log file."""
    timestamp, lines, waits = datetime(2025, 3, rng.randint(1, 28), rng.randint(0, 12)), [], []  # noqa: DTZ001 (a log's own)
    service, level = rng.choice(_SERVICES), rng.choice(("ERROR", "WARN"))
    for _ in range(rng.randint(200, 400)):
        timestamp += timedelta(seconds=rng.randint(1, 90))
        who, how, took = rng.choice(_SERVICES), rng.choice(("INFO", "INFO", "WARN", "ERROR")), rng.randint(3, 4000)
        lines.append(f"{timestamp:%Y-%m-%dT%H:%M:%S} {how} [{who}] request took {took} ms")
        waits += [took] if (who, how) == (service, level) else []
    question = f"How long did the slowest request of service {service} with level {level} take, in ms?"
    return _item(question, max(waits, default=0), {f"app-{_number(rng)}.log": "\n".join(lines) + "\n"})


def joined(rng: random.Random) -> Item:
    """Join a CSV file and a JSON file whose keys partly match."""
    prices = {name: rng.randint(50, 5000) for name in rng.sample(_GOODS, 8)}
    bought = [(rng.choice(_GOODS), rng.randint(1, 9)) for _ in range(rng.randint(60, 120))]
    gold = sum(prices[name] * count for name, count in bought if name in prices)
    basket = "article,count\n" + "".join(f"{name},{count}\n" for name, count in bought)
    question = (
        "The prices are in cents. What do the pieces in the basket cost in cents, leaving out articles without price?"
    )
    return _item(question, gold, {f"basket-{_number(rng)}.csv": basket, "prices.json": json.dumps(prices)})


def settings(rng: random.Random) -> Item:
    """Compare two INI files: find the keys whose values differ."""
    old = {part: {f"key{n}": str(rng.randint(1, 50)) for n in range(rng.randint(4, 9))} for part in _SERVICES}
    new = {part: {key: value if rng.random() < 0.7 else str(int(value) + 1) for key, value in keys.items()
                  if rng.random() < 0.9} for part, keys in old.items()}  # fmt: skip
    gold = sum(keys[key] != new[part].get(key, keys[key]) for part, keys in old.items() for key in keys)
    question = "How many keys are in both files under the same section with different values?"
    return _item(question, gold, {f"old-{_number(rng)}.ini": _ini(old), "new.ini": _ini(new)})


def _ini(values: Mapping[str, Mapping[str, str]]) -> str:
    out, parser = io.StringIO(), configparser.ConfigParser()
    parser.read_dict(values)
    parser.write(out)
    return out.getvalue()


KINDS = {"table": table, "tree": tree, "database": database, "log": log, "joined": joined, "settings": settings}


def make(n: int, seed: int) -> Sequence[Item]:
    """Generate the first ``n`` items of the suite from ``seed``."""
    return seeded("tool_scenarios", KINDS, n, seed)


SCENARIOS = benchmark(
    Benchmark(
        name="tool_scenarios",
        title="Jobs on files, made from a seed",
        domain="code",
        make=make,
        size=120,
        judge=exactly,
        licence="MIT (Agent0)",
        source="made here",
    )
)
