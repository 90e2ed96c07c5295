"""`python -m allocator`."""

from allocator.cli import main

main()
