"""Pseudo-random numbers that depend only on a position, so every part of a long vector can be made by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from gsnmf.support.arrays import Doubles

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def numbers_at(positions: Any, width: int, seed: int) -> Doubles:
    """``width`` numbers for every position, uniform on an interval around zero, with variance one.

    Mixes the bits of a counter, as the generator SplitMix64 does (Steele, Lea, Flood, Fast splittable pseudorandom
    number generators, OOPSLA 2014, doi:10.1145/2660193.2660195).

    Examples
    --------
    >>> everywhere = numbers_at(np.arange(5), 2, seed=1)
    >>> np.array_equal(everywhere[3:], numbers_at(np.array([3, 4]), 2, seed=1))
    True
    """
    counter = np.asarray(positions, dtype=np.uint64)[:, None] * np.uint64(width) + np.arange(width, dtype=np.uint64)
    with np.errstate(over="ignore"):
        bits: Any = (counter + np.uint64(seed << 32)) * _STEP
        bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
        bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
        bits ^= bits >> np.uint64(31)
    return np.asarray((bits >> np.uint64(11)) * (np.sqrt(12.0) / 2.0**53) - np.sqrt(3.0))
