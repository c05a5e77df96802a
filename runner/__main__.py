"""``python -m runner``: the same as ``runner``."""

from runner.cli import main

main()
