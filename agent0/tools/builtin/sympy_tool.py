"""Exact algebra. The expression is text of a model: it is parsed inside the sandbox and nowhere else, and there it is
numbers, letters, operators and the functions of ``_FUNCTIONS``, never Python."""

import json
from typing import Annotated, Literal

from agent0.events.values import ToolResult, ToolState
from agent0.tools import tool
from agent0.tools.definition import Example
from agent0.tools.results import answer
from agent0.tools.workspace import Workspace

Operation = Literal["solve", "simplify", "integrate", "diff", "factor", "expand", "equal", "evaluate"]

_FUNCTIONS = """
    Abs Add And Derivative Eq Ge Gt Integral Le Lt Limit Matrix Max Min Mod Mul N Ne Not Or Piecewise Pow Product
    Rational Sum acos acosh acot acoth acsc apart arg asec asin asinh atan atan2 atanh bell bernoulli beta binomial
    cancel catalan cbrt ceiling collect conjugate cos cosh cot coth csc csch degree det diff discriminant div
    divisor_count divisor_sigma divisors erf erfc euler exp expand expand_log expand_trig factor factorial
    factorial2 factorint fibonacci floor frac gamma gcd harmonic igcd ilcm im integer_nthroot integrate isprime lcm
    limit log logcombine loggamma lucas mod_inverse nextprime nsimplify powsimp prevprime prime primefactors primepi
    product radsimp ratsimp re real_root refine residue resultant root roots sec sech series sign simplify sin sinc
    sinh solve solveset sqrt subfactorial summation tan tanh together totient transpose trigsimp zeta E EulerGamma
    GoldenRatio I Catalan nan oo pi zoo
"""
"""What of sympy an expression may name. Nothing here reads text as code; what is not listed is a variable, or refused
where it is called."""

_PROGRAM = r"""
import ast, json, re, sys
import sympy as sp
from sympy.parsing.sympy_parser import convert_xor, implicit_multiplication, standard_transformations, stringify_expr

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

MADE = {name: getattr(sp, name) for name in ('Symbol', 'Integer', 'Float', 'Function', 'Rational')}
KNOWN = {**MADE, **{name: getattr(sp, name) for name in FUNCTIONS.split()}, 'pow': pow, 'round': round, 'sum': sum}
KNOWN |= {'abs': sp.Abs, 'ceil': sp.ceiling, 'len': len, 'ln': sp.log, 'max': sp.Max, 'min': sp.Min}
PLAIN = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Tuple, ast.List, ast.operator, ast.unaryop, ast.cmpop,
         ast.expr_context)

def parse(text):
    for name in re.findall(r'[A-Za-z_]\w+(?=\s*\()', text):
        if name not in KNOWN:
            stop('there is no function named %s here' % name[:40])
    # the transformations put Integer(2) and Symbol('x') for 2 and x; only what they can have made is evaluated
    steps = (*standard_transformations, convert_xor, implicit_multiplication)
    tree = ast.parse(stringify_expr(text, {}, KNOWN, steps).strip(), mode='eval')
    check(tree)
    return eval(compile(tree, 'expression', 'eval'), {'__builtins__': {}, **KNOWN})

def check(node):
    if isinstance(node, ast.Call):
        if node.keywords:
            stop('an expression has no named arguments')
        if not check_called(node.func, node.args):
            return
    elif isinstance(node, ast.Constant):
        if not isinstance(node.value, bool):
            stop('text and bare numbers are no mathematical expression')
    elif isinstance(node, ast.Name):
        if node.id not in KNOWN or node.id in MADE and node.id != 'Rational':
            stop('not a mathematical expression: ' + node.id[:40])
    elif not isinstance(node, PLAIN):
        stop('not a mathematical expression: %s is no part of one' % type(node).__name__)
    for part in ast.iter_child_nodes(node):
        check(part)

def check_called(function, values):
    # whether there is more to check in the call
    if not isinstance(function, ast.Name):
        stop('not a mathematical expression: only functions can be called')
    return function.id not in MADE or not values or not all(isinstance(one, ast.Constant) for one in values)

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
    request = json.dumps({"operation": operation, "expression": expression, "variable": variable, "other": other})
    return answer(await work.aside(f"GIVEN = {request!r}\nFUNCTIONS = {_FUNCTIONS!r}\n{_PROGRAM}"))
