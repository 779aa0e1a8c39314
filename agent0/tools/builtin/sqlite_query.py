"""SQL on databases of the student's own work folder. SQLite runs inside the sandbox, where no other file exists: the
read models, which hold verdicts, cannot be reached from here.
"""

import json
from typing import Annotated

from agent0.events.values import ToolResult, ToolState
from agent0.tools import tool
from agent0.tools.definition import Example
from agent0.tools.paths import mistaken, overfull, plain, unwritable
from agent0.tools.results import answer
from agent0.tools.workspace import Workspace

MOST_ROWS, WIDEST = 50, 80
"""Rows, and characters of a cell, that are shown."""

_PROGRAM = r"""
import json, os, re, sqlite3, sys

given = json.loads(GIVEN)
rows, width, allowed = given['rows'], given['width'], given['allowed']

def stop(message):
    print(message)
    sys.exit(1)

def statements(text):
    part = ''
    for piece in re.split('(;)', text):
        part += piece
        if piece == ';' and sqlite3.complete_statement(part):
            yield part
            part = ''
    yield part

def first(statement):
    return re.match(r'(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$))*(\S?\w*)', statement, re.S)[1].upper()

def cell(value):
    if isinstance(value, bytes):
        return '<%d bytes>' % len(value)
    text = 'NULL' if value is None else str(value).replace('\n', '\\n')
    return text if len(text) <= width else text[:width] + '...'

def show(cursor):
    if not cursor.description:
        return
    print(' | '.join(cell(column[0]) for column in cursor.description))
    found = cursor.fetchmany(rows + 1)
    for row in found[:rows]:
        print(' | '.join(map(cell, row)))
    more = 'more than ' if len(found) > rows else ''
    print('(%s%d row%s)' % (more, min(len(found), rows), '' if len(found) == 1 else 's'))

todo = [one for one in statements(given['sql']) if first(one)]
if not todo:
    stop('sql: it holds no statement')
for one in todo:
    if first(one) not in allowed:
        stop('sql: %s is not allowed here. Statements begin with one of: %s' % (first(one)[:40], ', '.join(allowed)))
path = os.path.abspath(given['database'])
os.makedirs(os.path.dirname(path), exist_ok=True)
database = sqlite3.connect(path, isolation_level=None)
database.text_factory = lambda data: data.decode(errors='backslashreplace')
try:
    for one in todo:
        before = database.total_changes
        cursor = database.execute(one)
        show(cursor)
        cursor.close()
        if database.total_changes > before:
            changed = database.total_changes - before
            print('%d row%s changed' % (changed, '' if changed == 1 else 's'))
        elif not cursor.description:
            print('done')
    database.close()
except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
    stop('SQLite says: %s. Nothing was kept of this call.' % str(error)[:400])
"""

_MADE = (
    ("sqlite_query", {"database": "shop.db", "sql": "CREATE TABLE t(name, price); INSERT INTO t VALUES ('tea', 3)"}),
)


@tool(
    pure=False,
    needs=[("sql", "*")],
    examples=[
        Example({"database": "shop.db", "sql": "SELECT * FROM t"}, "name | price\ntea | 3\n(1 row)", after=_MADE),
        Example(
            {"database": "shop.db", "sql": "SELECT * FROM u"},
            "SQLite says: no such table: u. Nothing was kept of this call.",
            ToolState.ERROR,
            _MADE,
        ),
    ],
)
async def sqlite_query(
    work: Workspace,
    database: Annotated[str, "a file of the work folder; it is made where there is none"],
    sql: Annotated[str, "one or more statements, with ; between"],
) -> ToolResult:
    """Run SQL on a SQLite database in your work folder and get back the rows. Changes are kept if all statements
    succeed. Example: {"database": "shop.db", "sql": "CREATE TABLE t(n); INSERT INTO t VALUES (1); SELECT * FROM t"}
    """
    database = plain(database)
    if problem := unwritable(database, work.files, work.policy):
        return mistaken(problem.replace("path:", "database:", 1))
    allowed = [keyword.upper() for keyword in work.policy.sql]
    request = {"database": database, "sql": sql, "allowed": allowed, "rows": MOST_ROWS, "width": WIDEST}
    there = {name: data for name, data in work.files.items() if name == database}
    result = await work.aside(f"GIVEN = {json.dumps(request)!r}\n{_PROGRAM}", there)
    data = result.files.get(database, b"")
    if result.state is ToolState.OK and data != there.get(database, b""):
        if problem := overfull({**work.files, database: data}):
            return mistaken(problem)
        work.files = {**work.files, database: data}
    return answer(result)
