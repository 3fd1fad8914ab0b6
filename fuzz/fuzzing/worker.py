"""One process that runs inputs of one target until its time is up or something is found.

Before each execution the input is written to memory that the parent shares, so that it is not lost when the process
is killed, crashes or hangs. Engines: `coverage` (atheris, of the uncompiled code) and `mutation`.
"""

from __future__ import annotations

import argparse
import gc
import json
import mmap
import resource
import struct
import sys
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fuzzing.targets import Target
    from pyspark_kafka.records._variant import Kernel

# Executions, and the length of the input that follows.
SHARED_HEAD = struct.Struct("<QQ")
SHARED_BYTES = 1 << 20
MAX_INPUT_BYTES = 1 << 16
# Processor time of one execution, and by how much it may make the process grow. An input has at most 64 KiB and says
# itself to how much it may decompress, at most 64 KiB.
MAX_SECONDS = 2.0
MAX_GROWTH_BYTES = 64 << 20
_ADDRESS_SPACE_BYTES = 8 << 30
# The growth of what comes first (imports, caches, pools) says nothing.
_WARM_UP = 200


class Execution:
    """Runs inputs and judges what every input must hold to: no other error, bounded time, bounded memory."""

    def __init__(self, target: Target, variants: Sequence[Kernel], shared: mmap.mmap) -> None:
        self._target = target
        self._variants = variants
        self._shared = shared
        self.count = 0

    def run(self, data: bytes) -> None:
        """Run one input; whatever it raises is a finding."""
        self.count += 1
        self._shared[: SHARED_HEAD.size] = SHARED_HEAD.pack(self.count, len(data))
        self._shared[SHARED_HEAD.size : SHARED_HEAD.size + len(data)] = data
        begun, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self._target.run(data, self._variants)
        seconds, after = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if seconds > MAX_SECONDS:
            raise TimeoutError(f"{len(data)} bytes took {seconds:.1f} s")
        if self.count > _WARM_UP and (after - before) << 10 > MAX_GROWTH_BYTES:
            raise MemoryError(f"{len(data)} bytes made the process grow by {(after - before) >> 10} MiB")


def main() -> None:
    """Read the arguments and run an engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--engine", choices=["coverage", "mutation"], required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--variants", choices=["compiled", "uncompiled", "both"], required=True)
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True, help="read; `coverage` adds to it")
    parser.add_argument("--sanitized", action="store_true", help="no limit of the address space, no judging of memory")
    arguments = parser.parse_args()
    with arguments.shared.open("r+b") as file:
        shared = mmap.mmap(file.fileno(), SHARED_BYTES)
    if not arguments.sanitized:
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE_BYTES, _ADDRESS_SPACE_BYTES))
    if arguments.engine == "coverage":
        _cover(arguments, shared)
    else:
        _mutate(arguments, shared)


def _load(arguments: argparse.Namespace, shared: mmap.mmap) -> tuple[Execution, Target, list[bytes]]:
    from fuzzing.oracles import load_variants  # noqa: PLC0415 - after instrumentation
    from fuzzing.seeds import seeds_of  # noqa: PLC0415 - likewise
    from fuzzing.targets import TARGETS  # noqa: PLC0415 - likewise

    target = TARGETS[arguments.target]
    variants = load_variants(arguments.variants)
    entries = [path.read_bytes() for path in sorted(arguments.corpus.iterdir())] if arguments.corpus.is_dir() else []
    print(json.dumps({"kernels": [str(variant.reading.__file__) for variant in variants]}), flush=True)
    return Execution(target, variants, shared), target, seeds_of(arguments.target) + entries


def _mutate(arguments: argparse.Namespace, shared: mmap.mmap) -> None:
    execution, target, pool = _load(arguments, shared)
    random = Random(arguments.seed)
    for entry in pool:
        execution.run(entry)
    deadline = time.monotonic() + arguments.seconds
    pool_size = len(pool) + 500
    while time.monotonic() < deadline:
        data = target.mutate(random.choice(pool), random.choice(pool), random)[:MAX_INPUT_BYTES]
        execution.run(data)
        # Changes on top of changes, without knowing whether they reach further: a few are kept for a while.
        if random.random() < 0.01:
            if len(pool) >= pool_size:
                pool.pop(random.randrange(pool_size - 500, pool_size))
            pool.append(data)


def _cover(arguments: argparse.Namespace, shared: mmap.mmap) -> None:
    import atheris  # noqa: PLC0415 - not there on every platform

    followed = ["pyspark_kafka.records", "pyspark_kafka._client.client", "pyspark_kafka.continuous"]
    with atheris.instrument_imports(include=followed):
        from pyspark_kafka._client.client.fetch import response  # noqa: F401, PLC0415 - to instrument it
        from pyspark_kafka._client.client.wire import frames  # noqa: F401, PLC0415 - to instrument it
        from pyspark_kafka.continuous.channel import frames as channel  # noqa: F401, PLC0415 - likewise
        from pyspark_kafka.continuous.epochs import messages  # noqa: F401, PLC0415 - likewise
        from pyspark_kafka.records import decoding, encoding  # noqa: F401, PLC0415 - likewise
    _instrument_kernel(atheris)
    execution, target, pool = _load(arguments, shared)
    seeds = arguments.corpus.parent / f"{arguments.corpus.name}.seeds"
    seeds.mkdir(parents=True, exist_ok=True)
    arguments.corpus.mkdir(parents=True, exist_ok=True)
    for number, entry in enumerate(pool):
        (seeds / f"{number:04}").write_bytes(entry)

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() < 0.5:
            return bytes(atheris.Mutate(data, max_size))
        return target.mutate(data, random.choice(pool), random)[:max_size]

    flags = [
        f"-max_total_time={max(1, round(arguments.seconds))}",
        f"-seed={arguments.seed}",
        f"-max_len={MAX_INPUT_BYTES // 4}",
        "-timeout=60",
        "-rss_limit_mb=0",
        "-print_final_stats=1",
        "-verbosity=0",
        str(arguments.corpus),
        str(seeds),
    ]
    # What the start made is never freed; without this every collection would walk over it.
    gc.freeze()
    atheris.Setup([sys.argv[0], *flags], execution.run, custom_mutator=mutate)
    atheris.Fuzz()


def _instrument_kernel(atheris: Any) -> None:
    """Instrument the uncompiled kernel, which is not loaded through an import that the hook would see."""
    from pyspark_kafka.records import _variant  # noqa: PLC0415 - after instrumentation

    kernel = _variant.load_pure_python()
    for module in (kernel.reading, kernel.writing):
        for thing in list(vars(module).values()):
            members = list(vars(thing).values()) if isinstance(thing, type) else [thing]
            for function in members:
                if type(function).__name__ == "function" and function.__module__ == module.__name__:
                    atheris.instrument_func(function)


if __name__ == "__main__":
    main()
