"""Measure state by key: the toolkit's `KeyedState`, and beside it a dictionary, Spark's state stores, other stores.

Each store, in a process of its own, is filled with keys; then rounds of rows with random keys are merged, each with a
snapshot after it; then one more round, and a restore, after which values are compared with what was written. A merge is
durable when it ends, except in a dictionary. Spark's stores run a streaming aggregation of the same rows; its times are
those of its progress reports, summed over tasks; it commits, which is its snapshot, in each micro-batch.
Run: make bench-state, or with ARGS="--keys 1000000 --stores toolkit,lmdb,rocksdb" for some.
"""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import platform
import random
import shutil
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from spark_state import PROVIDERS, aggregate
from state_stores import STORES

_USUAL = "toolkit,dict,spark-rocksdb,spark-hdfs,sqlite,sqlite-no-wal,sqlite-rowid,lmdb,rocksdb"
# What a store must be quicker by to be worth a dependency, and what a snapshot may take if one is made each second.
_WORTH, _SNAPSHOT_S = 3.0, 0.1
# More keys do not fit into the heap that Spark's driver has here.
_MAX_IN_HEAP = 2_000_000
_PACKAGES = {"lmdb": "lmdb", "rocksdb": "rocksdict"}
_PAIR = struct.Struct(">qq")
_CHECKED = 1_000


@dataclass(frozen=True)
class Result:
    """One store with one number of keys; times in seconds.

    Attributes:
        store: by name.
        keys: how many.
        fill: how long it took to fill.
        updates: the merges, a round each.
        snapshots: those after them.
        restore: how long it took; None where that is not measured.
        disk: bytes a key on the disk, with what snapshots take.
        memory: MiB that the process has grown by at most.
    """

    store: str
    keys: int
    fill: float
    updates: tuple[float, ...]
    snapshots: tuple[float, ...]
    restore: float | None
    disk: float | None
    memory: float


def key_of(number: int, keys: int) -> bytes:
    """Return 16 bytes; larger numbers have larger keys."""
    head = (number * ((1 << 64) // keys)).to_bytes(8, "big")
    return head + blake2b(number.to_bytes(8, "big"), digest_size=8).digest()


def add(_: bytes, old: bytes, new: bytes) -> bytes:
    """Add count and sum."""
    count, total = _PAIR.unpack(old)
    more, plus = _PAIR.unpack(new)
    return _PAIR.pack(count + more, total + plus)


def round_of(source: random.Random, keys: int, rows: int) -> dict[bytes, bytes]:
    """Return the rows of one round, counted by key."""
    found: dict[int, list[int]] = {}
    for _ in range(rows):
        pair = found.setdefault(source.randrange(keys), [0, 0])
        pair[0] += 1
        pair[1] += source.randrange(100)
    return {key_of(number, keys): _PAIR.pack(*pair) for number, pair in found.items()}


def measure(name: str, keys: int, rows: int, rounds: int) -> Result:
    """Measure one store, in this process."""
    directory = Path(tempfile.mkdtemp(prefix="pyspark-kafka-bench-"))
    try:
        store = STORES[name](directory / "state")
        source = random.Random(7)
        first = _PAIR.pack(1, 0)
        memory = _memory_mib("VmRSS")

        def filling() -> Iterator[tuple[bytes, bytes]]:
            for number in range(keys):
                yield key_of(number, keys), first

        began = time.perf_counter()
        store.load(filling())
        fill = time.perf_counter() - began
        expected = {key_of(number, keys): first for number in source.sample(range(keys), min(keys, _CHECKED))}
        updates, snapshots = [], []
        for _ in range(rounds):
            update = round_of(source, keys, rows)
            expected |= {key: add(key, expected[key], update[key]) for key in expected.keys() & update.keys()}
            began = time.perf_counter()
            store.merge(update, add)
            merged = time.perf_counter()
            store.snapshot()
            updates.append(merged - began)
            snapshots.append(time.perf_counter() - merged)
        store.merge(round_of(source, keys, rows), add)
        began = time.perf_counter()
        store.restore()
        restore = time.perf_counter() - began
        wrong = sum(store.get(key) != value for key, value in expected.items())
        if wrong:
            raise RuntimeError(f"{name}: {wrong} of {len(expected)} values are wrong after the restore")
        grown = _memory_mib("VmHWM") - memory
        size = store.size_bytes() / keys
        store.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return Result(name, keys, fill, tuple(updates), tuple(snapshots), restore, size, grown)


def measure_spark(name: str, keys: int, rows: int, rounds: int) -> Result:
    """Measure one of Spark's stores, in this process."""
    batches = aggregate(name, keys, rows, rounds)
    return Result(
        name,
        keys,
        batches[0].seconds,
        tuple(batch.updates_s for batch in batches[1:]),
        tuple(batch.commit_s for batch in batches[1:]),
        None,
        None,
        max(batch.memory_bytes for batch in batches) / (1 << 20),
    )


def left_out(name: str, keys: int) -> str | None:
    """Return why a store is not measured, if it is not."""
    if name == "spark-hdfs" and keys > _MAX_IN_HEAP:
        return f"its keys are all in the JVM's heap, of 3 GiB here; measured up to {_MAX_IN_HEAP:,} keys"
    package = _PACKAGES.get(name)
    if package is not None and importlib.util.find_spec(package) is None:
        return f"package {package} is not installed; make bench-state installs it"
    return None


def report(console: Console, keys: int, results: list[Result], rows: int) -> None:
    """Print what was measured with one number of keys."""
    table = Table(title=f"{keys:,} keys, {rows:,} rows a round; medians (shortest to longest), s")
    for heading in ("store", "update", "snapshot", "restore", "fill", "bytes a key", "memory, MiB"):
        table.add_column(heading, justify="left" if heading == "store" else "right")
    for one in results:
        restore = "-" if one.restore is None else f"{one.restore:.2f}"
        disk = "-" if one.disk is None else "in memory" if one.store == "dict" else f"{one.disk:.0f}"
        spread, copies = _spread(one.updates), _spread(one.snapshots)
        table.add_row(one.store, spread, copies, restore, f"{one.fill:.1f}", disk, f"{one.memory:,.0f}")
    console.print(table)
    own = next((one for one in results if one.store == "toolkit"), None)
    if own is None:
        return
    snapshot = statistics.median(own.snapshots)
    verdict = "yes" if snapshot < _SNAPSHOT_S else "no"
    say = f"snapshot of the toolkit's state: {1000 * snapshot:.1f} ms; goal < {1000 * _SNAPSHOT_S:.0f} ms: {verdict}"
    console.print(say, highlight=False)
    for one in results:
        if one.store in ("lmdb", "rocksdb"):
            # Per micro-batch, as a query would pay for it.
            times = _a_batch(own) / _a_batch(one)
            verdict = "yes" if times >= _WORTH else "no"
            console.print(
                f"{one.store}: update and snapshot {times:.1f} times as fast as the toolkit's; "
                f"worth a dependency, from {_WORTH:g} times: {verdict}",
                highlight=False,
            )


def _a_batch(one: Result) -> float:
    return statistics.median(one.updates) + statistics.median(one.snapshots)


def _spread(values: tuple[float, ...]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _memory_mib(field: str) -> float:
    """Return a line of this process's status; NaN where /proc is not there."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return float("nan")
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))


def main(
    keys: Annotated[str, typer.Option(help="Numbers of keys, with commas between.")] = "1000000,10000000",
    stores: Annotated[str, typer.Option(help=f"Any of {', '.join((*STORES, *PROVIDERS))}.")] = _USUAL,
    rows: Annotated[int, typer.Option(help="Rows of a round.")] = 100_000,
    rounds: Annotated[int, typer.Option(help="Rounds that count.")] = 5,
    output: Annotated[Path | None, typer.Option(help="Where the JSON goes.")] = None,
) -> None:
    """Measure and print."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    names = [name.strip() for name in stores.split(",") if name.strip()]
    unknown = [name for name in names if name not in STORES and name not in PROVIDERS]
    if unknown:
        raise typer.BadParameter(
            f"there is no store {', '.join(unknown)}; there are {', '.join((*STORES, *PROVIDERS))}"
        )
    results: list[Result] = []
    for count in map(int, keys.split(",")):
        of_count = []
        for name in names:
            reason = left_out(name, count)
            if reason is not None:
                console.print(f"{count:,} keys, {name}: left out: {reason}", highlight=False)
                continue
            console.print(f"{count:,} keys, {name}", highlight=False)
            work = measure_spark if name in PROVIDERS else measure
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
                one = process.submit(work, name, count, rows, rounds).result()
            of_count.append(one)
            console.print(f"    update {_spread(one.updates)} s, snapshot {_spread(one.snapshots)} s", highlight=False)
        report(console, count, of_count, rows)
        results += of_count
    found = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "rows": rows,
        "results": [asdict(each) for each in results],
    }
    output = output or Path(__file__).parent / "results" / "keyed_state.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(found, indent=2) + "\n")
    console.print(f"JSON: {output}", highlight=False)


if __name__ == "__main__":
    typer.run(main)
