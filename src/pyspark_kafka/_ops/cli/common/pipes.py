"""Pipes whose readers leave early, as `head` does: a command works to its end, and keeps its status."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any


class _Pipe(io.FileIO):
    """A file descriptor to write to. Once nobody reads it, what is written is dropped.

    Args:
        descriptor: stays open, whoever closes this.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.is_left = False

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            self.is_left = True
            # The descriptor itself: Python flushes its own streams once more when the program ends.
            with open(os.devnull, "wb", buffering=0) as nowhere:  # noqa: PTH123 - a descriptor is needed
                os.dup2(nowhere.fileno(), self.fileno())
            return super().write(data)


@contextmanager
def outliving_readers() -> Iterator[None]:
    """Drop what is written to standard output and standard error in the block after their readers have left.

    Python raises `BrokenPipeError` otherwise, which rich and typer make exit status 1, the status of a finding. It
    would also break off work that prints while it changes files.
    """
    with ExitStack() as stack:
        for stream, redirect in ((sys.stdout, redirect_stdout), (sys.stderr, redirect_stderr)):
            # A terminal has no reader that leaves; what a test captures has no descriptor.
            if not isinstance(stream, io.TextIOWrapper) or stream.isatty() or not _has_descriptor(stream):
                continue
            stream.flush()
            outliving = io.TextIOWrapper(
                io.BufferedWriter(_Pipe(stream.fileno())),
                encoding=stream.encoding,
                errors=stream.errors,
                line_buffering=stream.line_buffering or stream.write_through,
            )
            stack.enter_context(redirect(outliving))
            stack.callback(outliving.flush)
        yield


def is_left() -> bool:
    """Return whether the reader of standard output has left: whoever prints without an end should end."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return isinstance(raw, _Pipe) and raw.is_left


def _has_descriptor(stream: io.TextIOWrapper) -> bool:
    try:
        return stream.fileno() >= 0
    except OSError:
        return False
