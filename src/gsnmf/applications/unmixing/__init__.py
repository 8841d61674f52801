"""Unmixing of spectral images: endmembers, abundances, maps.

`gsnmf.applications.unmix` is the whole path. Its steps, in order, are the modules `cube` (reading), `sampling` and
`outliers` (which pixels take part), `endmembers` (which are chosen, by one of the `methods`), and `fcls` (abundances).
"""
