"""From names of figures and tables to results, pictures and pages."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks._measuring import machine_facts
from gsnmf.support.version import __version__
from reproduction import find_study, studies
from reproduction._figures import need_matplotlib
from reproduction._page import environment_lines, page
from reproduction._runner import Report, run_trials
from reproduction._store import Store, add_environment, environments
from reproduction._study import Record, Results, Section, Settings, Study

SEED = "follows from the experiment, the noise level and the number of the matrix"


def reproduce(
    names: Sequence[str],
    out: Path,
    settings: Settings,
    *,
    workers: int = 1,
    replot: bool = False,
    fresh: bool = False,
    report: Callable[[Study], Report],
) -> list[tuple[Study, Section]]:
    """Run what is not in the output folder yet, draw, and write ``index.md``; return the sections by study.

    Parameters
    ----------
    names : sequence of str
        Figures and tables, as `reproduction.part_names` has them.
    out : path
        Folder of results (``results``), pictures (``figures``) and the page.
    settings : Settings
    workers : int
        Processes.
    replot : bool
        Run nothing; present what is there.
    fresh : bool
        Discard earlier results of the studies that are asked for.
    report : callable
        Called with a study; returns what is called after each of its trials.
    """
    need_matplotlib()  # before hours of work, not after
    wanted = {study.name: study for study in (find_study(name) for name in names)}
    folder = out / "results"
    if not replot:
        facts = {"gsnmf": __version__, **machine_facts(), "seed": SEED, "quick": settings.quick, "workers": workers}
        began = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        for study in wanted.values():
            store = _store(study, folder)
            if fresh:
                store.clear()
            if run_trials(study, settings, store, workers=workers, report=report(study)):
                add_environment(folder, {"study": study.name, "began": began, **facts})
    sections = [
        (study, section)
        for study in studies()
        if study.name in wanted
        for section in present(study, [part for part in study.parts if part in names], out, settings)
    ]
    if not sections:
        raise FileNotFoundError(f"There are no results of {', '.join(wanted)} in {folder}; run without --replot first.")
    write_page(out / "index.md", sections, out, figures="figures")
    return sections


def present(study: Study, parts: Sequence[str], out: Path, settings: Settings) -> list[Section]:
    """The sections of a study, from all results that are in the output folder; none if there are no results."""
    folder = out / "results"
    store = _store(study, folder)
    records, missing = _records(study, folder), study.missing(settings)
    if not records and not missing:
        return []
    results = Results(records, store.arrays, missing, out, lambda name: _records(find_study(name), folder))
    return [study.present(part, results) for part in parts]


def _records(study: Study, folder: Path) -> list[Record]:
    return [record for rows in _store(study, folder).load().values() for record in rows]


def write_page(
    path: Path, sections: Sequence[tuple[Study, Section]], out: Path, *, figures: str, shows_data: bool = True
) -> None:
    """The page of these sections."""
    introduction = [
        "J. Pan and N. Gillis, *Generalized Separable Nonnegative Matrix Factorization*, IEEE TPAMI 43(5), 2021, "
        "[doi:10.1109/TPAMI.2019.2956046](https://doi.org/10.1109/TPAMI.2019.2956046), reproduced by "
        "`make reproduce`.",
        *environment_lines(environments(out / "results")),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    text = page(
        "The paper, reproduced",
        introduction,
        [section for _, section in sections],
        figures=figures,
        shows_data=shows_data,
    )
    path.write_text(text, encoding="utf-8")


def write_docs(docs: Path, sections: Sequence[tuple[Study, Section]], out: Path) -> Path:
    """``reproduction.md`` in a folder of documentation, with its pictures in ``reproduction``; return its path.

    Pictures that show entries of data sets are left out, because the data may not be published with the library.
    """
    pictures = docs / "reproduction"
    pictures.mkdir(parents=True, exist_ok=True)
    for _, section in sections:
        for figure in section.figures:
            if not figure.of_data:
                shutil.copyfile(out / "figures" / f"{figure.name}.png", pictures / f"{figure.name}.png")
    path = docs / "reproduction.md"
    write_page(path, sections, out, figures="reproduction", shows_data=False)
    return path


def _store(study: Study, folder: Path) -> Store:
    return Store(folder, study.name, study.columns, study.text)
