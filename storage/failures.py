"""Classifies I/O errors: those of a failed disk, and those of a single operation.

In Kafka any IOException takes the log directory offline. Here an error that does not affect other files, or that may
pass, fails only its operation: a directory goes offline only if the error leaves doubt about its data.
"""

from __future__ import annotations

import errno

OUT_OF_DESCRIPTORS = frozenset((errno.EMFILE, errno.ENFILE))
_PASSING = OUT_OF_DESCRIPTORS | {errno.EAGAIN, errno.EINTR, errno.ENOMEM}
_OF_ONE_OPERATION = _PASSING | {
    errno.EEXIST,
    errno.EINVAL,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.ENOTEMPTY,
}


def is_disk_failure(error: OSError) -> bool:
    """Whether the error takes the directory offline: EIO, EROFS, ENOSPC,
    EACCES and everything else that is not listed here.
    """
    return error.errno not in _OF_ONE_OPERATION


def is_passing(error: OSError) -> bool:
    """Whether the same operation may succeed later: the process ran out of descriptors or memory."""
    return error.errno in _PASSING
