"""The command line of the laboratory: demo, simulations, papers, advice, recorded days.

Begin with `app`, which registers all commands. To keep `--help` quick, a command imports the rest
of the laboratory only when it runs.
"""

from laboratory.cli.app import main

__all__ = ["main"]
