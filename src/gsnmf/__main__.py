"""``python -m gsnmf``: the command line."""

from gsnmf.cli import main

main()
