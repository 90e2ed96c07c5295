"""Tokens that masters and operators of this machine send, where a sidecar wants them."""

import os
from pathlib import Path

import grpc

from allocator.lab.links.bearer import Bearer

SESSION_TOKEN_FILE = "MESOS_ALLOCATOR_SESSION_TOKEN_FILE"  # noqa: S105 - a name
TOKEN_FILE = "MESOS_ALLOCATOR_TOKEN_FILE"  # noqa: S105
"""Environment variables that name the file with a master's token, and with an operator's."""


def read_token(variable: str) -> str:
    """Read the token in the file that a variable names; empty where it names none.

    Raises OSError where the file cannot be read.
    """
    path = os.environ.get(variable, "")
    return Path(path).read_text(encoding="utf-8").strip() if path else ""


def with_operators_token(channel: grpc.Channel) -> grpc.Channel:
    """Have an operator's token sent with each call, where there is one."""
    token = read_token(TOKEN_FILE)
    return grpc.intercept_channel(channel, Bearer(token)) if token else channel
