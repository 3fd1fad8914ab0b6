"""Receive buffers are used again, but never while somebody looks at them."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_kafka.client.net.buffers import FrameBuffers

MIB = 1 << 20


def identity(view: memoryview) -> int:
    return id(view.obj)


def test_a_free_buffer_is_used_again() -> None:
    buffers = FrameBuffers()
    first = identity(buffers.take(MIB))
    assert identity(buffers.take(MIB - 5)) == first


def test_a_buffer_that_is_looked_at_is_left_alone() -> None:
    buffers = FrameBuffers()
    held = buffers.take(MIB)
    held[:3] = b"abc"
    other = buffers.take(MIB)
    other[:3] = b"xyz"
    assert bytes(held[:3]) == b"abc"
    assert identity(held) != identity(other)


def test_a_slice_and_an_arrow_buffer_count_as_looking() -> None:
    buffers = FrameBuffers()
    part = buffers.take(MIB)[10:20]
    arrow = pa.py_buffer(buffers.take(MIB))
    third = buffers.take(MIB)
    third[:] = b"\xff" * MIB
    assert bytes(part) == bytes(10)
    assert arrow.to_pybytes() == bytes(MIB)


def test_the_view_has_the_size_asked_for() -> None:
    assert [len(FrameBuffers().take(size)) for size in (4, 70_000, MIB + 1)] == [4, 70_000, MIB + 1]


def test_only_so_many_buffers_are_kept_and_clear_forgets_them() -> None:
    buffers = FrameBuffers(kept=1)
    first, second = buffers.take(MIB), buffers.take(MIB)
    first[:5], second[:5] = b"first", b"secnd"
    del first, second
    assert bytes(buffers.take(MIB)[:5]) == b"secnd"
    buffers.clear()
    assert bytes(buffers.take(MIB)[:5]) == bytes(5)


def _huge_pages() -> bool:
    try:
        return "[always]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    except OSError:
        return False


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is about glibc's allocator")
@pytest.mark.skipif(_huge_pages(), reason="with huge pages there are few faults either way")
@pytest.mark.parametrize("kept", [True, False])
def test_freed_memory_stays_with_the_process(kept: bool) -> None:
    program = f"""
import resource
from pyspark_kafka.client.net.buffers import keep_freed_memory
if {kept}:
    keep_freed_memory()
    keep_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    held = [bytearray(3 << 20) for _ in range(8)]
    del held
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults(), faults()
print(min(faults() for _ in range(5)))
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    pages = 8 * (3 << 20) // os.sysconf("SC_PAGE_SIZE")
    assert (int(done.stdout) < pages // 10) is kept
