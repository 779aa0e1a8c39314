"""Exact algebra. The expression is text of a model: it is parsed inside the sandbox and nowhere else."""

import json
from typing import Annotated, Literal

from agent0.tools import Example, tool
from agent0.tools.answer import answer
from agent0.tools.workspace import Workspace
from events.values import ToolResult, ToolState

Operation = Literal["solve", "simplify", "integrate", "diff", "factor", "expand", "equal", "evaluate"]

_PROGRAM = r"""
import json, re, sys
import sympy as sp
from sympy.parsing.sympy_parser import convert_xor, implicit_multiplication, parse_expr, standard_transformations

def stop(message):
    print(message)
    sys.exit(1)

def read(text):
    nested = depth = 0
    for sign in text:
        nested += (sign in '([') - (sign in ')]')
        depth = max(depth, nested)
    if len(text) > 500 or depth > 20 or re.search(r'\d{40}', text):
        stop('too large: at most 500 characters, 20 nested brackets and 39 digits in a row')
    if not re.fullmatch(r'[\w\s+\-*/^().,=\[\]!<>]+', text, re.ASCII) or re.search(r'__|\.\s*[A-Za-z_]', text):
        stop('not a mathematical expression: ' + text[:80])
    sides = re.sub('[<>!]=', '', text).replace('==', '=').split('=')
    if len(sides) > 2:
        stop('an equation has one = sign; this has %d: %s' % (len(sides) - 1, text[:80]))
    if any(not side.strip() for side in sides):
        stop('nothing stands on one side of the = sign: ' + text[:80])
    try:
        if len(sides) == 2 and not re.search('[<>!]=', text):
            left, right = sides
            return sp.Eq(parse(left), parse(right), evaluate=False)
        return parse(text)
    except Exception as error:
        stop('cannot be read: %s (%s)' % (text[:80], type(error).__name__))

def parse(text):
    return parse_expr(text, transformations=(*standard_transformations, convert_xor, implicit_multiplication))

def unknowns(expression, wanted):
    free = sorted(expression.free_symbols, key=str)
    names = [sp.Symbol(name.strip()) for name in wanted.split(',') if name.strip()]
    return names or free

def one(expression, wanted):
    names = unknowns(expression, wanted)
    if len(names) != 1:
        stop('name one variable: the expression has ' + (', '.join(map(str, names)) or 'none'))
    return names[0]

def solve(expression, wanted, other):
    if not isinstance(expression, (sp.Eq, sp.Expr)):
        stop('solve takes an equation or an expression, which stands for = 0; this is neither')
    x = one(expression, wanted)
    found = sp.solve(expression, x)
    if found == [] and sp.simplify(sign(expression)) == 0:
        return 'every value'
    return ', '.join(map(str, sorted(found, key=sp.default_sort_key))) or 'no solution'

def sign(expression):
    return expression.lhs - expression.rhs if isinstance(expression, sp.Eq) else expression

def equal(expression, wanted, other):
    if not other:
        if not isinstance(expression, sp.Eq):
            stop('equal needs a second expression in other, or an equation')
        return sp.simplify(sign(expression)) == 0
    return sp.simplify(sign(expression) - sign(read(other))) == 0

def number(expression, wanted, other):
    value = expression.doit() if isinstance(expression, sp.Basic) else expression
    if isinstance(value, sp.Eq):
        return equal(value, wanted, '')
    if isinstance(value, sp.Basic) and value.has(sp.nan, sp.zoo):
        stop('undefined: division by zero')
    return '%s = %s' % (value, sp.N(value, 15)) if getattr(value, 'is_irrational', False) else value

def factor(expression, wanted, other):
    if not getattr(expression, 'is_Integer', False):
        return sp.factor(expression)
    parts = sp.factorint(expression).items()
    return '*'.join(str(p) if k == 1 else '%s**%s' % (p, k) for p, k in parts) or expression

OPERATIONS = {
    'solve': solve,
    'equal': equal,
    'evaluate': number,
    'simplify': lambda e, v, o: sp.simplify(e),
    'factor': factor,
    'expand': lambda e, v, o: sp.expand(e),
    'diff': lambda e, v, o: sp.diff(e, one(e, v)),
    'integrate': lambda e, v, o: sp.integrate(e, one(e, v)),
}

given = json.loads(GIVEN)
try:
    print(OPERATIONS[given['operation']](read(given['expression']), given['variable'], given['other']))
except NotImplementedError:
    stop('sympy cannot do this')
except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
    stop('%s: %s' % (type(error).__name__, str(error)[:200]))
"""


@tool(
    pure=True,
    needs=[("module", "mpmath"), ("module", "sympy")],
    examples=[
        Example({"operation": "solve", "expression": "x^2 = 9"}, "-3, 3"),
        Example({"operation": "simplify", "expression": "(x^2 - 1)/(x - 1)"}, "x + 1"),
        Example({"operation": "integrate", "expression": "x*sin(x)"}, "-x*cos(x) + sin(x)"),
        Example({"operation": "equal", "expression": "(x + 1)^2", "other": "x^2 + 2x + 1"}, "True"),
        Example(
            {"operation": "solve", "expression": "x + y = 3"},
            "name one variable: the expression has x, y",
            ToolState.ERROR,
        ),
    ],
)
async def sympy(
    work: Workspace,
    operation: Annotated[Operation, "what to do"],
    expression: Annotated[str, "an expression or an equation; ^ is a power"],
    variable: Annotated[str, "for solve, diff and integrate; empty: the only one there is"] = "",
    other: Annotated[str, "for equal: the second expression"] = "",
) -> ToolResult:
    """Exact algebra on an expression or equation such as "2*x + 3 = 11". Operations: solve, simplify, integrate, diff,
    factor, expand, equal (of expression and other) and evaluate. Name the variable where there is more than one.
    Example: {"operation": "solve", "expression": "x^2 = 9"} gives -3, 3
    """
    given = json.dumps({"operation": operation, "expression": expression, "variable": variable, "other": other})
    return answer(await work.aside(f"GIVEN = {given!r}\n{_PROGRAM}"))
