"""What a run consists of: topics, queries, the driver program that runs them, and what it has said so far."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from chaos.cluster import Cluster
from kit.programs.run import kill_program, start_program
from kit.waiting import eventually

PROGRAM = Path(__file__).with_name("driver.py")
MAIN = "orders"
PATTERN_TOPICS = ("events-a", "events-b")
BATCH_OUT = "out-batch"
# The broker's time: when a record came through is not asked of a consumer, which brokers' faults would hold up as well.
BROKER_TIME = {"message.timestamp.type": "LogAppendTime"}
# How long the windows are in which records are counted.
WINDOW_S = 5
MAIN_PARTITIONS, PATTERN_PARTITIONS, OUT_PARTITIONS = 4, 2, 3
_STARTED_WITHIN_S = 1200.0
_ENDED_WITHIN_S = 600.0


def out_of(query: str) -> str:
    """Return the topic that a query writes."""
    return f"out-{query}"


def dead_of(query: str) -> str:
    """Return the topic of a continuous query's dead letters."""
    return f"out-{query}-dead"


@dataclass(frozen=True)
class Query:
    """A streaming query.

    Attributes:
        reads: the topics it reads.
        out: the topic it writes.
        shape: `copy`: each record once, with where it was read; `totals`: counts per partition and window.
        exactly_once: what its sink promises.
        tolerant: whether it reads with failOnDataLoss=false.
        watermark_s: of `totals`, after how long a window is closed.
        tasks: of a continuous query; 0: it runs in micro-batches.
        apart: of a continuous query, of how many output partitions each lane writes to one only; 0: keys decide.
        place: of a continuous query, a folder for what its workers and the faults leave to each other.
        plants: of a continuous query, its bugs; see `continuous/planted.py`.
    """

    name: str
    reads: tuple[str, ...]
    format: str
    checkpoint: str
    source: Mapping[str, str]
    sink: Mapping[str, str]
    shape: str = "copy"
    trigger: str = "500 milliseconds"
    exactly_once: bool = False
    tolerant: bool = False
    watermark_s: int = 0
    tasks: int = 0
    apart: int = 0
    place: str = ""
    plants: tuple[str, ...] = ()

    @property
    def out(self) -> str:
        """The topic it writes."""
        return out_of(self.name)

    @property
    def dead(self) -> str:
        """The topic of its dead letters."""
        return dead_of(self.name)

    @property
    def outs(self) -> list[str]:
        """All topics it writes."""
        return [self.out, self.dead] if self.tasks else [self.out]


def usual_queries(place: Path, watermark_s: int, plants: Mapping[str, str] | None = None) -> list[Query]:
    """Return the queries of a run.

    Args:
        place: a folder for their checkpoints.
        watermark_s: after how long windows are closed: longer than any partition may stand still.
        plants: bugs by the name of the query that has it; see `planted.py`.
    """

    def make(name: str, source: dict[str, str], sink: dict[str, str] | None = None, **more: Any) -> Query:
        plant = (plants or {}).get(name)
        planted = {"plant": plant} if plant else {}
        return Query(
            name=name,
            format="planted_kafka" if plant else "pyspark_kafka",
            checkpoint=str(place / f"checkpoint-{name}"),
            source={**source, **planted},
            sink={"topic": out_of(name), **(sink or {}), **planted},
            **more,
        )

    once = {"deliveryGuarantee": "exactly_once", "checkpointLocation": str(place / "checkpoint-once")}
    pattern = {
        "subscribePattern": "events-.*",
        "failOnDataLoss": "false",
        "checkpointLocation": str(place / "checkpoint-pattern"),
        # Topics come and go while brokers do: what is new is to be seen soon.
        "kafka.metadata.max.age.ms": "5000",
    }
    return [
        make("plain", {"subscribe": MAIN}, reads=(MAIN,)),
        make("once", {"subscribe": MAIN}, once, reads=(MAIN,), exactly_once=True),
        make("pattern", pattern, reads=PATTERN_TOPICS, tolerant=True),
        make("totals", {"subscribe": MAIN}, reads=(MAIN,), shape="totals", watermark_s=watermark_s),
    ]


def continuous_queries(place: Path, plants: Mapping[str, tuple[str, ...]] | None = None) -> list[Query]:
    """Return the continuous queries of a run.

    Args:
        place: a folder for their checkpoints.
        plants: bugs by the name of the query that has them; see `continuous/planted.py`.
    """

    def make(name: str, source: dict[str, str], *, exactly_once: bool, **more: Any) -> Query:
        return Query(
            name=name,
            format="pyspark_kafka",
            checkpoint=str(place / f"checkpoint-{name}"),
            source=source,
            # Rows name their topics.
            sink={"deliveryGuarantee": "exactly_once" if exactly_once else "at_least_once"},
            shape="flow",
            exactly_once=exactly_once,
            place=str(place / f"faults-{name}"),
            plants=(plants or {}).get(name, ()),
            **more,
        )

    pattern = {"subscribePattern": "events-.*", "failOnDataLoss": "false", "kafka.metadata.max.age.ms": "5000"}
    return [
        make("flow", {"subscribe": MAIN}, exactly_once=False, reads=(MAIN,), tasks=2),
        # A lane that waits for its output holds up readers of no other lane's.
        make("flow-once", {"subscribe": MAIN}, exactly_once=True, reads=(MAIN,), tasks=4, apart=4),
        make("flow-pattern", pattern, exactly_once=True, reads=PATTERN_TOPICS, tolerant=True, tasks=2),
    ]


def compared_queries(place: Path) -> list[Query]:
    """Return two queries that do the same, ours and one of Spark's connector, in the same session."""
    return [
        Query(
            name=name,
            reads=(MAIN,),
            format=connector,
            checkpoint=str(place / f"checkpoint-{name}"),
            source={"subscribe": MAIN},
            sink={"topic": out_of(name)},
            # As soon as the one before is done.
            trigger="0 seconds",
        )
        for name, connector in (("ours", "pyspark_kafka"), ("theirs", "kafka"))
    ]


@dataclass(frozen=True)
class DriverSpec:
    """The specification that the driver program reads."""

    place: str
    queries: Mapping[str, Mapping[str, Any]]
    batch_topics: Mapping[str, str] = field(default_factory=dict)
    batch_format: str = "pyspark_kafka"
    master: str = "local[2,4]"
    jars: tuple[str, ...] = ()
    conf: Mapping[str, str] = field(default_factory=dict)


class DriverProcess:
    """The driver program while it runs; killed with all it has started when the block ends.

    Args:
        spec: what to run.
        bootstrap: what its queries are given.
    """

    def __init__(self, spec: DriverSpec, bootstrap: str) -> None:
        self.place = Path(spec.place)
        self.place.mkdir(parents=True)
        (self.place / "spec.json").write_text(json.dumps(asdict(spec)))
        (self.place / "bootstrap").write_text(bootstrap)
        self.set_readable({}, 0)
        self._spec = spec
        self._read = 0
        self._events: list[dict[str, Any]] = []
        self._process = start_program(str(PROGRAM), str(self.place / "spec.json"), log=self.place / "log")

    def __enter__(self) -> DriverProcess:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kill_program(self._process)

    @property
    def log(self) -> str:
        """What driver, JVM and workers have printed."""
        return (self.place / "log").read_text(errors="replace")

    @property
    def events(self) -> list[dict[str, Any]]:
        """What has happened so far."""
        path = self.place / "events.jsonl"
        if path.exists():
            with path.open() as written:
                written.seek(self._read)
                while (line := written.readline()).endswith("\n"):
                    self._events.append(json.loads(line))
                    self._read = written.tell()
        return self._events

    def set_readable(self, ranges: Mapping[int, tuple[int, int]], number: int) -> None:
        """Tell which ranges batch reads may read now."""
        text = json.dumps({"number": number, "ranges": {str(key): list(value) for key, value in ranges.items()}})
        beside = self.place / "readable.new"
        beside.write_text(text)
        beside.replace(self.place / "readable.json")

    def set_bootstrap(self, address: str) -> None:
        """Tell which server jobs are given that start from now on."""
        beside = self.place / "bootstrap.new"
        beside.write_text(address)
        beside.replace(self.place / "bootstrap")

    def await_running(self, batches: int = 2) -> None:
        """Wait until every query has done some micro-batches."""

        def all_run() -> bool:
            self._check_alive()
            newest = {each["query"]: each["batch"] for each in self.events if each["event"] == "progress"}
            return all(newest.get(name, -1) >= batches - 1 for name in self._spec.queries)

        eventually(all_run, _STARTED_WITHIN_S)

    def finish(self) -> None:
        """Have the queries read everything there is, and end the program."""
        (self.place / "finish").touch()
        end = time.monotonic() + _ENDED_WITHIN_S
        while not any(each["event"] == "finished" for each in self.events):
            self._check_alive()
            if time.monotonic() > end:
                raise AssertionError(f"the driver did not finish\n{self.log[-4000:]}")
            time.sleep(0.1)

    def _check_alive(self) -> None:
        if self._process.poll() is not None and not any(each["event"] == "finished" for each in self.events):
            raise AssertionError(f"the driver has ended unasked\n{self.log[-6000:]}")


def create_topics(cluster: Cluster, queries: Sequence[Query]) -> None:
    """Make what queries read and write."""
    cluster.create_topic(MAIN, MAIN_PARTITIONS, BROKER_TIME)
    for topic in PATTERN_TOPICS:
        cluster.create_topic(topic, PATTERN_PARTITIONS, BROKER_TIME)
    cluster.create_topic(BATCH_OUT, OUT_PARTITIONS, BROKER_TIME)
    for query in queries:
        for topic in query.outs:
            cluster.create_topic(topic, query.apart or OUT_PARTITIONS, BROKER_TIME)
