"""``gsnmf markers``: an AnnData file in, the annotated file and a report out."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gsnmf.commands.options import AsJson, Effort, Quiet, parse_rank
from gsnmf.support.atomic_files import atomic_write, check_targets
from gsnmf.support.formatting import percent
from gsnmf.support.optional import import_optional

if TYPE_CHECKING:
    from rich.console import Console

    from gsnmf.applications.marker_genes.cell_report import CellFindings


def markers(
    file: Annotated[Path, typer.Argument(help="An AnnData file, .h5ad.")],
    rank: Annotated[
        str,
        typer.Option(
            "--rank",
            "-r",
            "--factors",
            "-k",
            metavar="R|G,C|A-B|auto",
            help="Number of factors; genes,cells: 8,4; or choose: auto.",
        ),
    ] = "10",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The annotated file; by default NAME-markers.h5ad.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The report; by default beside the annotated file, .html.")
    ] = None,
    layer: Annotated[str | None, typer.Option(help="Layer to use instead of X.")] = None,
    use_raw: Annotated[
        bool | None, typer.Option("--raw/--no-raw", help="Use .raw; by default if X has negative entries.")
    ] = None,
    genes: Annotated[
        str, typer.Option(help="Column of flags in var, or all for all genes.", metavar="COLUMN|all")
    ] = "highly_variable",
    exclude: Annotated[
        list[str] | None, typer.Option(help="Leave out genes that match; by default ^MT- and ^RP[LS].", metavar="REGEX")
    ] = None,
    batch_key: Annotated[str | None, typer.Option(help="Column of obs with batches.", metavar="COLUMN")] = None,
    groupby: Annotated[
        str | None, typer.Option(help="Column of obs with cell types or clusters, for the report.", metavar="COLUMN")
    ] = None,
    effort: Annotated[Effort, typer.Option(help="What the search may spend.")] = Effort.balanced,
    members: Annotated[int, typer.Option(min=1, help="Genes, or cells, that a factor may mix.")] = 1,
    max_cells: Annotated[int, typer.Option(min=1, help="Choose from a sample of at most this many cells.")] = 20_000,
    backed: Annotated[bool, typer.Option("--backed", help="Read the matrix in blocks, not into memory.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find marker genes and prototype cells of single-cell data, and write a report."""
    target = out or file.with_name(f"{file.stem}-markers.h5ad")
    page = report or target.with_suffix(".html")
    _check_targets(file, target, page)
    from gsnmf.applications import markers as find_markers
    from gsnmf.applications.marker_genes.cell_report import gather_cells, summary, write_cells
    from gsnmf.applications.marker_genes.plots import group_labels
    from gsnmf.commands.output import print_found, stages

    asked = parse_rank(rank)
    started = time.perf_counter()
    with stages(quiet) as stage:
        stage("Reading")
        data = _read(file, backed)
        if groupby is not None:
            group_labels(data, groupby)  # an error now, not after the search
        find_markers(
            data,
            asked,
            layer=layer,
            use_raw=use_raw,
            genes=None if genes == "all" else genes,
            exclude=("^MT-", "^RP[LS]") if exclude is None else exclude,
            batch_key=batch_key,
            effort=effort.value,
            members=members,
            max_cells=max_cells,
        )
        stage("Writing")
        parameters = {"Source": file.name, "Seconds": f"{time.perf_counter() - started:.1f}"}
        findings = gather_cells(data, groupby=groupby, title=file.name, parameters=parameters)
        _write(data, target)
        write_cells(findings, page)
    print_found(
        page,
        summary(findings),
        lambda console: _print_cells(console, findings, target),
        as_json=as_json,
        quiet=quiet,
        warnings=findings.warnings,
    )


def _check_targets(file: Path, target: Path, page: Path) -> None:
    """Find out before the work whether its results can be written."""
    if not file.exists():
        raise FileNotFoundError(2, "No such file or directory", str(file))
    if target.resolve() == file.resolve():
        raise typer.BadParameter(f"--out must be another file than {file}.")
    if page.resolve() in (file.resolve(), target.resolve()):
        raise typer.BadParameter(f"--report must be another file than {page}.")
    check_targets([target, page])


def _read(file: Path, backed: bool) -> Any:
    from gsnmf.datasets.readers.files import reading

    anndata = import_optional("anndata", "gsnmf markers", 'pip install "gsnmf[cells]"')
    with reading(file, "an AnnData file"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what anndata says about files of earlier versions
        return anndata.read_h5ad(file, backed="r" if backed else None)


def _write(data: Any, target: Path) -> None:
    try:
        with atomic_write(target) as draft, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data.write_h5ad(draft.name)
    finally:
        if data.isbacked:
            data.file.close()


def _print_cells(console: Console, findings: CellFindings, target: Path) -> None:
    from rich.markup import escape

    from gsnmf.commands.output import print_table

    console.print(f"[bold]{escape(findings.sentence)}.[/bold]")
    rows = []
    for factor in findings.factors:
        kind = "marker gene" if factor.kind == "gene" else "prototype cell"
        genes, group = ", ".join(g.name for g in factor.genes[:5]), factor.groups[0].name if factor.groups else "–"
        rows.append((factor.title, kind, percent(factor.share), str(factor.n_cells), genes, group))
    print_table(console, ["factor", "stands for it", "share", "cells", "genes that go with it", "found in"], rows)
    typer.echo(f"Annotated file: {target}")
