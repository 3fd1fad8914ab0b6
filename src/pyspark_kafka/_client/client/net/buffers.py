"""Memory that is used again: a fetch of 8 MiB costs more in page faults than in copying.

Pure: no sockets, no clock.
"""

from __future__ import annotations

from functools import cache

_PAGE = 1 << 20
_LARGEST_KEPT = 64 << 20
# Just below 32 MiB, the highest threshold that glibc chooses.
_LARGEST_ADAPTED = 31 << 20


@cache
def keep_freed_memory() -> None:
    """Keep up to 62 MiB of freed memory in the process for the next batch; else the system takes it, page by page.

    glibc returns blocks of 128 KiB and more to the system until it has seen a larger one being freed. A block that is
    never written to is enough, and takes about 30 us. It is done once: a second block of this size would be written to.
    Elsewhere this has no effect, nor where the environment sets `MALLOC_MMAP_THRESHOLD_` or `MALLOC_TRIM_THRESHOLD_`.

    Runs on: executor, when a reader or a writer is made.

    Source: mallopt(3), "dynamic mmap threshold" of `M_MMAP_THRESHOLD`.
    """
    # Zeros of this number come from `calloc`, which leaves the pages alone.
    bytes(_LARGEST_ADAPTED)


class FrameBuffers:
    """Lends writable memory for one frame at a time; memory without a view is used again automatically.

    A `bytearray` refuses to change its size while a memoryview of it is alive. So a buffer that is still in use (by a
    decoder, or by an Arrow array without a copy) is recognized and left alone: views never change under a reader.

    Args:
        kept: how many buffers are kept for use again.
    """

    __slots__ = ("_buffers", "_kept")

    def __init__(self, kept: int = 2) -> None:
        self._kept = kept
        self._buffers: list[bytearray] = []

    def take_buffer(self, size: int) -> memoryview:
        """Return `size` bytes of memory with undefined content."""
        for index, buffer in enumerate(self._buffers):
            if len(buffer) >= size and _is_free(buffer):
                # The least recently used buffer is tried first next time.
                self._buffers.append(self._buffers.pop(index))
                return memoryview(buffer)[:size]
        if not _PAGE // 16 <= size <= _LARGEST_KEPT:
            return memoryview(bytearray(size))
        # Whole MiB, so that responses of nearly the same size fit into one another's buffers.
        buffer = bytearray((size + _PAGE - 1) // _PAGE * _PAGE)
        if len(self._buffers) >= self._kept:
            self._buffers.pop(0)
        self._buffers.append(buffer)
        return memoryview(buffer)[:size]

    def clear(self) -> None:
        """Forget all buffers; views that are alive stay valid."""
        self._buffers.clear()


def _is_free(buffer: bytearray) -> bool:
    try:
        buffer.append(0)
    except BufferError:
        return False
    buffer.pop()
    return True
