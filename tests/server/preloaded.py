"""What is ready in the process from which commands of tests are forked."""

import functools
import gc

import grpc._channel
import grpc._server
import pydantic.type_adapter
import typer.main

import allocator.server.process.main
import allocator.server.process.observing  # noqa: F401
from allocator.cli.app import app
from allocator.policies import load_ahead
from allocator.server.system import loop_cache

load_ahead()
loop_cache.prepare()  # reads all loops
# Otherwise each command would build the tree of all commands, which takes longer than most of them.
typer.main.get_command = functools.cache(typer.main.get_command)
typer.main.get_command(app)
gc.freeze()  # a collection would copy all shared pages
