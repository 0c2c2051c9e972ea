"""`python -m ottla`."""

from .cli import main

main(prog_name="ottla")
