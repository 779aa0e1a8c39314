"""Logistic regression by Newton's method, for calibrators and for the fusion of signals."""

from collections.abc import Sequence

import numpy as np

STEPS = 100
SMALLEST = 1e-9
"""What keeps the curvature invertible without moving the optimum, and a step that moves nothing."""


def fit_logistic(
    rows: Sequence[Sequence[float]], targets: Sequence[float], ridges: Sequence[float], start: Sequence[float]
) -> list[float]:
    """Find the coefficients of lowest log loss, halving a step that would not lower it.

    Args:
        rows: [items, coefficients].
        targets: [items], the probability that each item should have.
        ridges: [coefficients]; half of each times its coefficient squared is added to the loss.
        start: [coefficients] to begin at.
    """
    matrix, probabilities, ridge, line = (np.asarray(each, dtype=float) for each in (rows, targets, ridges, start))

    def loss(at: np.ndarray) -> float:
        scores = matrix @ at
        return float(np.logaddexp(0, scores).sum() - probabilities @ scores + ridge @ at**2 / 2)

    for _ in range(STEPS):
        shares = (1 + np.tanh(matrix @ line / 2)) / 2
        slope = matrix.T @ (shares - probabilities) + ridge * line
        step = np.linalg.solve((matrix.T * (shares * (1 - shares))) @ matrix + np.diag(ridge + SMALLEST), slope)
        size, before = 1.0, loss(line)
        while size > SMALLEST and loss(line - size * step) > before:
            size /= 2
        line = line - size * step
        if size * float(np.abs(step).max()) < SMALLEST:
            break
    return [float(coefficient) for coefficient in line]
