"""Converts a cycle's grants to bytes and back."""

import numpy as np

from allocator.core import Grants
from allocator.v1 import journal_pb2
from allocator.wire.journal.framing import JournalError

_ROWS = ("client", "agent", "special_grant", "special")
"""Columns of row numbers, four bytes each."""

_AMOUNTS = ("tasks", "special_amount")


def write_grants(grants: Grants) -> journal_pb2.JournalGrants:
    columns = {name: getattr(grants, name).astype("<i4").tobytes() for name in _ROWS}
    columns |= {name: getattr(grants, name).astype("<i8").tobytes() for name in _AMOUNTS}
    return journal_pb2.JournalGrants(
        amount=grants.amount.astype("<i8").tobytes(), columns=grants.amount.shape[1], **columns
    )


def read_grants(message: journal_pb2.JournalGrants) -> Grants:
    """Convert a message to grants. Raises JournalError if the bytes are not arrays of its sizes."""
    try:
        columns = {name: _numbers(getattr(message, name), "<i4") for name in _ROWS}
        columns |= {name: _numbers(getattr(message, name), "<i8") for name in _AMOUNTS}
        shape = len(columns["client"]), message.columns
        return Grants(amount=_numbers(message.amount, "<i8").reshape(shape), **columns)
    except ValueError as error:
        raise JournalError(f"grants cannot be read: {error}") from None


def _numbers(data: bytes, dtype: str) -> np.ndarray:
    return np.frombuffer(data, dtype).astype(np.int64)
