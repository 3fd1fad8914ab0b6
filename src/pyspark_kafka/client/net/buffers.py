"""Receive buffers that are used again: a fetch of 8 MiB costs more in page faults than in copying.

Pure: no sockets, no clock. Layer: client.
"""

from __future__ import annotations

_PAGE = 1 << 20
_LARGEST_KEPT = 64 << 20


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

    def take(self, size: int) -> memoryview:
        """Return `size` bytes of memory with undefined content."""
        for index, buffer in enumerate(self._buffers):
            if len(buffer) >= size and _is_free(buffer):
                # The one that was used longest ago is tried first next time.
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
