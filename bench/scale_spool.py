"""What an exactly-once micro-batch asks of an object store that its spool is on: calls by kind, a batch and a file.

Without Spark, as in `scale_publish.py`; the store is moto's S3 server, whose calls take 20 ms each. So the calls are
those of a user's store, and the seconds about.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from goals import Figure
from scale_publish import prepare, streaming_write

from kit.fakes.object_store import ObjectStore
from pyspark_kafka._client.client.cluster.pool import close_clients
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

if TYPE_CHECKING:
    from collections import Counter

_TASKS, _TASK_MIB = 4, 40
_LATENCY_S = 0.02
_KINDS = ("PUT", "POST", "COPY", "GET", "HEAD", "LIST", "DELETE")


def measure() -> list[Figure]:
    """Return the lines of this part."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pyspark-kafka-bench-")))
        kafka = stack.enter_context(EmbeddedKafka(heap="1g", jvm_flags=WARM_JVM_FLAGS))
        stack.callback(close_clients)
        store = stack.enter_context(ObjectStore("spool", latency_s=_LATENCY_S))
        kafka.create_topic("out", partitions=4)
        options = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": "out", "spoolLocation": store.uri("q")}
        write = streaming_write(options, directory)
        figures = []
        # The first batch warms up; the small one after a large one shows what a batch costs that spools nothing.
        for batch, mib in enumerate((_TASK_MIB, _TASK_MIB, 0)):
            tasks = _TASKS if mib else 1
            store.take()
            began = time.perf_counter()
            messages = prepare(write, batch, directory, tasks=tasks, mib=mib)
            prepared, written = time.perf_counter() - began, store.take()
            began = time.perf_counter()
            write.commit(batch, messages)
            committed, read = time.perf_counter() - began, store.take()
            if batch:
                files = sum(1 for message in messages for _ in message.spool_files())
                size = sum(message.encoded_bytes for message in messages) / (1 << 20)
                what = f"a batch of {size:,.0f} MiB in {files} spool files" if files else "a batch that spools nothing"
                figures += _lines(what, files, (prepared, written), (committed, read))
    return figures


def _lines(
    what: str, files: int, tasks: tuple[float, Counter[str]], commit: tuple[float, Counter[str]]
) -> list[Figure]:
    figures = []
    for who, (took, calls) in (("its tasks, one after the other", tasks), ("the driver's commit", commit)):
        total = sum(calls.values())
        each = f", {total / files:.1f} a file" if files else ""
        values: dict[str, float | str] = {kind: float(calls[kind]) for kind in _KINDS}
        figures.append(
            Figure(
                f"spool on S3, {what}: {who}",
                f"{total} calls{each}; {_shown(calls)}; {took:.1f} s",
                values={**values, "files": files, "seconds": took},
            )
        )
    return figures


def _shown(calls: Counter[str]) -> str:
    return " ".join(f"{kind} {calls[kind]}" for kind in _KINDS if calls[kind]) or "none"
