"""What is ready in the process from which commands of tests are forked."""

import functools
import gc
import os
from importlib import import_module

import typer.main

from allocator.cli.app import app
from allocator.policies import load_ahead
from allocator.server.system import loop_cache

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC reads it once; each command sets it
for name in (
    "allocator.server.process.main",
    "allocator.server.process.observing",
    # These are otherwise imported on first use.
    "grpc._channel",
    "grpc._server",
    "pydantic.type_adapter",
):
    import_module(name)
load_ahead()
loop_cache.prepare()  # reads all loops
# Otherwise each command would build the tree of all commands, which takes longer than most of them.
typer.main.get_command = functools.cache(typer.main.get_command)
typer.main.get_command(app)
gc.freeze()  # a collection would copy all shared pages
