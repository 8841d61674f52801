"""Averages of a synthetic study by method and noise level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gsnmf.support.arrays import Flags, Floats
from reproduction._study import Record


@dataclass(frozen=True)
class Curves:
    """All trials of a study, arranged by method and noise level.

    Attributes
    ----------
    epsilons : array
        The noise levels, in increasing order.
    n_matrices : dict
        Matrices at each noise level.
    values : dict
        For each quantity, method and noise level the values of all matrices.
    """

    epsilons: Floats
    n_matrices: dict[float, int]
    values: dict[str, dict[str, dict[float, list[float]]]]

    @classmethod
    def of(cls, records: Sequence[Record]) -> Curves:
        """Arrange the records of a study."""
        values: dict[str, dict[str, dict[float, list[float]]]] = {q: {} for q in ("accuracy", "error", "distance")}
        matrices: dict[float, set[object]] = {}
        for record in records:
            epsilon = float(record["epsilon"] or 0.0)
            matrices.setdefault(epsilon, set()).add(record["matrix"])
            for quantity, methods in values.items():
                value = record[quantity]
                if value is not None:
                    levels = methods.setdefault(str(record["method"]), {})
                    levels.setdefault(epsilon, []).append(float(value))
        counts = {epsilon: len(matrices[epsilon]) for epsilon in sorted(matrices)}
        return cls(np.array(sorted(counts)), counts, values)

    def means(self, quantity: str) -> dict[str, Floats]:
        """Average over the matrices, by method, one value per noise level."""
        return {
            method: np.array([np.mean(levels[epsilon]) for epsilon in self.epsilons])
            for method, levels in self.values[quantity].items()
        }

    def at(self, quantity: str, method: str, epsilon: float) -> list[float]:
        """The values of all matrices at a noise level."""
        return self.values[quantity][method][epsilon]

    def largest(self, quantity: str, method: str) -> float:
        """The largest value of any matrix."""
        return max(max(values) for values in self.values[quantity][method].values())

    def up_to(self, epsilon: float) -> Flags:
        """Which noise levels are at most this, within the three digits that the paper prints."""
        return np.asarray(self.epsilons <= epsilon * 1.005)
