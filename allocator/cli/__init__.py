"""The command line: parses arguments, and runs the server or calls a running sidecar.

Exit codes are those of `allocator.cli.tree.Exit`. Start with `app`, which registers all commands.
`render` formats output and makes no calls.
"""

from allocator.cli.app import main

__all__ = ["main"]
