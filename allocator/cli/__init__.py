"""The command line: parses arguments and calls the server, the simulator or a running sidecar.

Exit codes are those of `allocator.cli.tree.Exit`.

Begin with `app`, which registers all commands. `render` formats output and makes no calls.
"""

from allocator.cli.app import main

__all__ = ["main"]
