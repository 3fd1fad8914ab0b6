"""The limit of open files and connections in this process, and of tasks that a driver can have under it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

# For what the program, Spark's gateway, the clients of Kafka and the checkpoint open in the meantime.
_OTHERS = 100


def file_limit() -> int | None:
    """Return the maximum of open files in this process; None if there is no limit, or no known one."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def raise_file_limit() -> None:
    """Let this process have as many files open as its user may allow it, as Java does."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # macOS names a hard limit that it does not grant.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def room_for_tasks() -> int | None:
    """Return the maximum of tasks that can be connected to this process; None if it is not limited, at least 1."""
    limit = file_limit()
    if limit is None:
        return None
    try:
        used = sum(1 for _ in Path("/dev/fd").iterdir())
    except OSError:
        used = 0
    return max(1, limit - used - _OTHERS)
