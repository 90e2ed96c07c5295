"""Why something could not be written, in words."""

import errno

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
}

_FULL = (errno.ENOSPC, errno.EDQUOT)


def reason(error: Exception) -> str:
    """Say why something could not be written."""
    if isinstance(error, OSError):
        return _REASONS.get(error.errno or 0) or error.strerror or str(error)
    return str(error)


def is_full(error: Exception | None) -> bool:
    """Whether there was no room: that passes, while a wrong path does not."""
    return isinstance(error, OSError) and error.errno in _FULL
