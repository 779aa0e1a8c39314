"""Functions that generated repositories are made of: from a list of whole numbers to another one, or to a number. Each
says in its docstring exactly what it returns. ``{a}`` and ``{b}`` are drawn."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Template:
    """A function's ``names``, of which one is drawn, its docstring and body, indented by four; ``a`` and ``b`` are the
    first and last value of what is drawn into both."""

    names: tuple[str, ...]
    doc: str
    body: str
    a: tuple[int, int] = (2, 2)
    b: tuple[int, int] = (2, 2)

    def source(self, name: str, a: int, b: int) -> str:
        """The function as Python."""
        lines = self.body.strip("\n").replace("{a}", str(a)).replace("{b}", str(b))
        doc = self.doc.replace("{a}", str(a)).replace("{b}", str(b))
        return f'def {name}(values):\n    """{doc}"""\n{lines}\n'


TO_LIST: Mapping[str, Template] = {
    "clip": Template(
        ("clip", "bounded", "limited"),
        "Return values with those below {a} raised to {a} and those above {b} lowered to {b}.",
        """
    result = []
    for value in values:
        if value < {a}:
            result.append({a})
        elif value > {b}:
            result.append({b})
        else:
            result.append(value)
    return result
""",
        (-9, 0),
        (3, 12),
    ),
    "windows": Template(
        ("window_sums", "moving_sums", "sliding_sums"),
        "Return the sum of each {a} neighbours, from the first on; nothing where there are fewer than {a} values.",
        """
    sums = []
    for start in range(len(values) - {a} + 1):
        total = 0
        for value in values[start : start + {a}]:
            total += value
        sums.append(total)
    return sums
""",
        (2, 4),
    ),
    "steps": Template(
        ("differences", "steps", "changes"),
        "Return how much each value but the first {a} is above the one {a} places before it.",
        """
    result = []
    for place in range({a}, len(values)):
        result.append(values[place] - values[place - {a}])
    return result
""",
        (1, 3),
    ),
    "unique": Template(
        ("unique", "without_repeats", "first_of_each"),
        "Return values without those whose remainder by {a} an earlier one has.",
        """
    seen = set()
    result = []
    for value in values:
        rest = value % {a}
        if rest in seen:
            continue
        seen.add(rest)
        result.append(value)
    return result
""",
        (4, 11),
    ),
    "rotate": Template(
        ("rotated", "turned", "shifted_left"),
        "Return values with the first {a} moved behind the last; where there are fewer, {a} is counted around.",
        """
    if not values:
        return []
    places = {a} % len(values)
    return values[places:] + values[:places]
""",
        (2, 7),
    ),
    "runs": Template(
        ("run_lengths", "streaks", "lengths_of_runs"),
        "Return how long each run of equal neighbours is; a run longer than {a} counts as {a}.",
        """
    lengths = []
    previous = None
    for value in values:
        if lengths and value == previous:
            lengths[-1] += 1
        else:
            lengths.append(1)
        previous = value
    return [min(length, {a}) for length in lengths]
""",
        (2, 4),
    ),
    "peaks": Template(
        ("peaks", "tops", "local_highs"),
        "Return the values that are above both neighbours by {a} or more; the first and the last have only one.",
        """
    result = []
    for place, value in enumerate(values):
        if place > 0 and value - values[place - 1] < {a}:
            continue
        if place + 1 < len(values) and value - values[place + 1] < {a}:
            continue
        result.append(value)
    return result
""",
        (1, 4),
    ),
    "decay": Template(
        ("running_totals", "carried", "accumulated"),
        "Return running totals; a total that reaches {a} or more is lowered by {b} before it is kept.",
        """
    total = 0
    result = []
    for value in values:
        total += value
        if total >= {a}:
            total -= {b}
        result.append(total)
    return result
""",
        (8, 20),
        (3, 9),
    ),
    "weave": Template(
        ("woven", "halves_woven", "interleaved"),
        "Return values of the first half and the second in turns, the first half first; it has the odd one, if any.",
        """
    middle = (len(values) + 1) // 2
    result = []
    for place in range(middle):
        result.append(values[place])
        if middle + place < len(values):
            result.append(values[middle + place])
    return result
""",
    ),
    "ranks": Template(
        ("ranks", "places", "standings"),
        "Return for each value how many values are greater, and no more than {a}.",
        """
    result = []
    for value in values:
        greater = 0
        for other in values:
            if other > value and greater < {a}:
                greater += 1
        result.append(greater)
    return result
""",
        (3, 6),
    ),
}
TO_NUMBER: Mapping[str, Template] = {
    "weighted": Template(
        ("check_digit", "weighted_sum", "checksum"),
        "Return the sum of values times their place, counted from {a}, as remainder by {b}.",
        """
    total = 0
    for place, value in enumerate(values, {a}):
        total += place * value
    return total % {b}
""",
        (1, 4),
        (7, 97),
    ),
    "longest": Template(
        ("longest_rise", "longest_climb", "best_streak"),
        "Return how many values the longest run has in which each is above the one before by {a} or more.",
        """
    best = 0
    length = 0
    for place, value in enumerate(values):
        if place and value - values[place - 1] >= {a}:
            length += 1
        else:
            length = 1
        best = max(best, length)
    return best
""",
        (0, 3),
    ),
    "pairs": Template(
        ("close_pairs", "near_pairs", "pairs_within"),
        "Return how many pairs of places have values that differ by {a} or less.",
        """
    count = 0
    for place, value in enumerate(values):
        for other in values[place + 1 :]:
            if abs(value - other) <= {a}:
                count += 1
    return count
""",
        (1, 4),
    ),
    "tiers": Template(
        ("price", "fee", "charge"),
        "Return the charge for all values: {b} for each unit of the first {a} of a value, half of {b} for each unit "
        "above, rounded down; a value below 1 is free.",
        """
    total = 0
    for value in values:
        if value < 1:
            continue
        first = min(value, {a})
        rest = value - first
        total += first * {b} + rest * {b} // 2
    return total
""",
        (3, 8),
        (3, 11),
    ),
    "drop": Template(
        ("deepest_fall", "largest_drop", "worst_fall"),
        "Return by how much the values fall most from a value to a later one, at most {a} places later; 0 for none.",
        """
    worst = 0
    for place, value in enumerate(values):
        for later in values[place + 1 : place + {a} + 1]:
            worst = max(worst, value - later)
    return worst
""",
        (2, 5),
    ),
    "span": Template(
        ("spread", "span", "spread_of_middle"),
        "Return the difference of the largest and smallest value after the {a} smallest were left out; 0 for none.",
        """
    kept = sorted(values)[{a}:]
    if not kept:
        return 0
    return kept[-1] - kept[0]
""",
        (1, 3),
    ),
}
KEEPER = '''class {title}:
    """Keeps numbers in the order of their arrival."""

    def __init__(self):
        self._values = []
        self._sizes = []

    def add(self, values):
        """Add what {first} makes of values; return how many numbers are kept."""
        added = {first}(values)
        self._values.extend(added)
        self._sizes.append(len(added))
        return len(self._values)

    def undo(self, times=1):
        """Take the last additions back, as many as times, or all where there are fewer; return how many numbers."""
        for _ in range(min(times, len(self._sizes))):
            size = self._sizes.pop()
            self._values = self._values[: len(self._values) - size]
        return len(self._values)

    def result(self):
        """Return {second} of all numbers that are kept, and {empty} where there are none."""
        if not self._values:
            return {empty}
        return {second}(self._values)
'''
TITLES = ("Journal", "Register", "Archive", "Logbook", "Tally")
