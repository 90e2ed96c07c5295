"""`python -m laboratory`."""

from laboratory.cli import main

main()
