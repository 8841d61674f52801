"""Reproduce figures and tables of the paper; an interrupted run goes on where it was."""

from __future__ import annotations

import argparse
import datetime
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import joblib

import gsnmf
from benchmarks._measuring import machine_facts
from gsnmf.support.formatting import text_table
from reproduction import find_study, part_names, studies
from reproduction.pictures import need_matplotlib
from reproduction.report import Section, environment_lines, page, verdicts
from reproduction.study import Report, Settings, Study, environments, forget_trials, note_environment, run_trials

_SECONDS_BETWEEN_LINES = 30.0
_SEED = "follows from the experiment, the noise level and the number of the matrix"
_PAPER = (
    "J. Pan and N. Gillis, *Generalized Separable Nonnegative Matrix Factorization*, IEEE TPAMI 43(5), 2021, "
    "[doi:10.1109/TPAMI.2019.2956046](https://doi.org/10.1109/TPAMI.2019.2956046), reproduced by `make reproduce`."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, draw and print what the command line asks for."""
    known = part_names()
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="figures and tables; by default all")
    add("--list", action="store_true", help="list the names and exit")
    add("--out", type=Path, default=Path("build", "reproduction"), help="folder of results, pictures and index.md")
    add("--data", type=Path, help="folder of the data files; by default the one that GSNMF_DATA names")
    add("--quick", action="store_true", help="a few trials in place of all")
    earlier = parser.add_mutually_exclusive_group()
    earlier.add_argument("--replot", action="store_true", help="run nothing; draw what was measured before")
    earlier.add_argument("--fresh", action="store_true", help="discard what was measured before")
    add("--workers", type=int, default=joblib.cpu_count(), help="processes; by default one per core")
    add("--docs", type=Path, help="also write reproduction.md, with its pictures, to this folder")
    asked = parser.parse_args(arguments)
    if asked.list:
        width = max(map(len, known))
        print("\n".join(f"{name:{width}}  {title}" for name, title in known.items()))
        return
    if unknown := [name for name in asked.names if name not in known]:
        parser.error(f"NAME must be one of {', '.join(known)}; got {unknown[0]!r}.")
    if asked.workers < 1:
        parser.error(f"--workers must be at least 1; got {asked.workers}.")
    try:
        sections = reproduce(
            asked.names or list(known),
            asked.out,
            Settings(quick=asked.quick, data=asked.data),
            workers=asked.workers,
            replot=asked.replot,
            fresh=asked.fresh,
            report=_progress,
        )
    except (FileNotFoundError, ModuleNotFoundError) as error:  # no results to draw, or no Matplotlib
        sys.exit(str(error))
    for section in sections:
        _print_section(section)
    if any(section.claims for section in sections):
        print(f"\nStatements of the paper: {verdicts(sections)}.")
    print(f"Page: {asked.out / 'index.md'}")
    if asked.docs is not None:
        print(f"Documentation: {write_docs(asked.docs, sections, asked.out)}")


def reproduce(
    names: Sequence[str],
    out: Path,
    settings: Settings,
    *,
    workers: int = 1,
    replot: bool = False,
    fresh: bool = False,
    report: Callable[[Study], Report],
) -> list[Section]:
    """Run what is not in the output folder yet, draw, and write ``index.md``; return the sections.

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
    wanted = {find_study(name).name for name in names}
    chosen = [study for study in studies() if study.name in wanted]
    facts = {"seed": _SEED, "quick": settings.quick, "workers": workers}
    for study in [] if replot else chosen:
        if fresh:
            forget_trials(study.name, out)
        began = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        if run_trials(study, settings, out, workers=workers, report=report(study)):
            run = {"study": study.name, "began": began, "gsnmf": gsnmf.__version__, **machine_facts(), **facts}
            note_environment(out, run)
    sections = [
        section
        for study in chosen
        for section in study.sections([part for part in study.parts if part in names], out, settings)
    ]
    if not sections:
        raise FileNotFoundError(f"There are no results of {', '.join(wanted)} in {out}; run without --replot first.")
    _write_page(out / "index.md", sections, out, figures="figures")
    return sections


def write_docs(docs: Path, sections: Sequence[Section], out: Path) -> Path:
    """``reproduction.md`` in a folder of documentation, with its pictures in ``reproduction``; return its path.

    Pictures that show entries of data sets are left out, because the data may not be published with the library.
    """
    pictures = docs / "reproduction"
    pictures.mkdir(parents=True, exist_ok=True)
    for figure in [figure for section in sections for figure in section.figures if not figure.of_data]:
        shutil.copyfile(out / "figures" / f"{figure.name}.png", pictures / f"{figure.name}.png")
    path = docs / "reproduction.md"
    _write_page(path, sections, out, figures="reproduction", shows_data=False)
    return path


def _write_page(path: Path, sections: Sequence[Section], out: Path, *, figures: str, shows_data: bool = True) -> None:
    introduction = [_PAPER, *environment_lines(environments(out))]
    text = page("The paper, reproduced", introduction, sections, figures=figures, shows_data=shows_data)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _progress(study: Study) -> Report:
    """Print how far a study is: in one line on a terminal, elsewhere in a new line now and then."""
    begin = last = time.monotonic()
    first: int | None = None
    terminal = sys.stdout.isatty()

    def report(done: int, total: int) -> None:
        nonlocal last, first
        now = time.monotonic()
        first = done if first is None else first
        if not (terminal or done == total or now - last >= _SECONDS_BETWEEN_LINES):
            return
        last = now
        rate = (now - begin) / (done - first) if done > first else 0.0
        left = f", about {rate * (total - done):.0f} s left" if rate and done < total else ""
        text = f"{study.name}: {done} of {total} trials, {now - begin:.0f} s{left}"
        print(f"\r{text:<79}" if terminal else text, end="" if terminal and done < total else "\n", flush=True)

    return report


def _print_section(section: Section) -> None:
    print(f"\n{section.title}")
    for paragraph in section.text:
        print(paragraph.replace("**", ""))
    for table in section.tables:
        if not table.long:
            print("\n".join(["", *text_table(table.header, table.rows), table.caption, ""]))
    for claim in section.claims:
        print(f"{claim.verdict}: {claim.statement}. {claim.numbers}")


if __name__ == "__main__":
    main()
