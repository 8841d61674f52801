"""The paper's two tables of quality, ours next to the paper's, with seconds.

Every matrix of tables 1 and 3 that is at hand (``GSNMF_DATA``), at the paper's rank: the best figure that the paper
prints for a separable or generalized separable method, and what ``method="auto"`` reaches with each effort.
"""

from __future__ import annotations

from functools import partial
from typing import get_args

import gsnmf
from benchmarks._measuring import main, print_table, timed
from gsnmf.search.effort import Effort
from reproduction.matrices import PAPER_NAMES, PaperMatrix, data_folder, load, missing_data

_QUICK = ("tr23", "tr11")


def run(quick: bool = False) -> None:
    """Measure and print; ``quick`` for two small matrices and without the largest effort."""
    data_folder()  # says at once if there is no data
    efforts: tuple[Effort, ...] = get_args(Effort)[: 2 if quick else 3]
    names = _QUICK if quick else PAPER_NAMES
    rows = (_row(load(name), efforts) for name in names if not missing_data(name))
    heading = ["matrix", "rank", "paper's best", *(f"{effort}, s" for effort in efforts)]
    print_table("quality in percent, and seconds with the weights", heading, rows)


def _row(data: PaperMatrix, efforts: tuple[Effort, ...]) -> list[str]:
    cells = [data.name, str(data.rank), f"{data.best_published:.2f}"]
    for effort in efforts:
        seconds, result = timed(partial(gsnmf.factorize, data.matrix, data.rank, effort=effort))
        cells.append(f"{100 * result.quality:.2f} ({result.rows.size}, {result.columns.size}) {seconds:.1f} s")
    return cells


if __name__ == "__main__":
    main(run)
