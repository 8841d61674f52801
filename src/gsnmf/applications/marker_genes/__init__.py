"""Marker genes and prototype cells of single-cell data: AnnData in, AnnData out."""
