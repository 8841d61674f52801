"""Reproduce figures and tables of the paper; an interrupted run goes on where it was."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gsnmf.support.formatting import text_table
from reproduction import part_names
from reproduction._page import verdicts
from reproduction._reproduce import reproduce, write_docs
from reproduction._runner import Report
from reproduction._study import Section, Settings, Study

_SECONDS_BETWEEN_LINES = 30.0


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
    add("--workers", type=int, default=_cores(), help="processes; by default one per core")
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
    for _, section in sections:
        _print_section(section)
    if any(section.claims for _, section in sections):
        print(f"\nStatements of the paper: {verdicts([section for _, section in sections])}.")
    print(f"Page: {asked.out / 'index.md'}")
    if asked.docs is not None:
        print(f"Documentation: {write_docs(asked.docs, sections, asked.out)}")


def _progress(study: Study) -> Report:
    """Print how far a study is: in one line on a terminal, elsewhere in a new line now and then."""
    begin = last = time.monotonic()
    first: int | None = None
    terminal = sys.stdout.isatty()

    def report(done: int, total: int, trial: str) -> None:
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


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    main()
