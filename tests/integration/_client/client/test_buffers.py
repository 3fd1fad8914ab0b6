"""Memory that receive buffers have freed stays with the process, for the next ones."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest


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
from pyspark_kafka._client.client.net.buffers import keep_freed_memory
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
