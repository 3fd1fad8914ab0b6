"""Reads back what a run has left, and has it checked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from chaos.alarms import alarms, false_alarms
from chaos.checker import TaskCopy, check_totals, is_read_twice
from chaos.cluster import Cluster
from chaos.continuous.checker import (
    FlowRecord,
    RunCopy,
    check_held,
    check_letters,
    check_runs,
    check_withdrawn,
    epochs_of,
)
from chaos.continuous.visible import VisibleTimes
from chaos.faults import Scene
from chaos.report import Outcome
from chaos.timeline import Timeline
from chaos.world import BATCH_OUT, MAIN, WINDOW_S, DriverProcess, Query
from kit.independent_client import read_to_end
from kit.log_checker import Extent, Findings, Log, check

_WINDOW_MS = WINDOW_S * 1000
# A window is closed by the micro-batch after the one that brings the watermark beyond it.
_CLOSED_WITHIN_S = 15


def collect(
    cluster: Cluster,
    scene: Scene,
    queries: Sequence[Query],
    driver: DriverProcess,
    span: tuple[float, float],
    seed: int,
    visible: VisibleTimes,
) -> Outcome:
    """Read the outputs and compare them with what there was to read."""
    servers = cluster.direct
    topics = sorted({topic for query in queries for topic in query.reads})
    ends = {(topic, key): end for topic in topics for key, end in scene.positions.ends(topic).items()}
    extents = scene.ledger.extents(ends)
    findings: dict[str, Findings] = {}
    times: dict[str, Timeline] = {}
    windows: Counter[tuple[int, int]] = Counter()
    for query in sorted(queries, key=lambda query: query.shape):
        if query.shape == "copy":
            wanted = {log: extent for log, extent in extents.items() if log.topic in query.reads}
            copies = _Copies(cluster, query)
            findings[query.name] = Findings()
            check(
                findings[query.name],
                wanted,
                copies.all(),
                is_gone=scene.ledger.is_gone,
                is_read_twice=is_read_twice,
            )
            times[query.name] = Timeline((read_ms / 1000, written) for read_ms, written in copies.times)
            if MAIN in query.reads and not windows:
                windows = copies.windows
        elif query.shape == "flow":
            wanted = {log: extent for log, extent in extents.items() if log.topic in query.reads}
            findings[query.name], times[query.name] = _flow(cluster, scene, query, wanted, visible)
        else:
            findings[query.name], times[query.name] = _totals(servers, query, windows)
    events = driver.events
    done = Counter(each["job"] for each in events if each["event"] == "batch done")
    return Outcome(
        strikes=sorted(scene.strikes, key=lambda strike: strike.begin),
        findings={query.name: findings[query.name] for query in queries},
        times=times,
        ended=[(each["time"], each["query"], each["error"]) for each in events if each["event"] == "ended"],
        batch_jobs=done,
        batch_failures=[
            (each["time"], each["job"], each["error"]) for each in events if each["event"] == "batch failed"
        ],
        batch_wrong=[
            f"found {each['found']}, wanted {each['wanted']}" for each in events if each["event"] == "batch wrong"
        ],
        batch_lost=_batch_lost(servers, events),
        vanished=scene.ledger.vanished(ends),
        false_alarms=false_alarms(alarms(driver.log), scene.ledger.deletions),
        exactly_once=frozenset(query.name for query in queries if query.exactly_once),
        not_caught_up=[
            query.name
            for query in queries
            if not any(each["event"] == "caught up" and each["query"] == query.name for each in events)
        ],
        failed_faults=scene.failures,
        notes=[f"{scene.ledger.failed_writes} records of which the writer does not know whether brokers have them"],
        begin=span[0],
        end=span[1],
        seed=seed,
    )


def _flow(
    cluster: Cluster, scene: Scene, query: Query, wanted: Mapping[Log, Extent], visible: VisibleTimes
) -> tuple[Findings, Timeline]:
    """Check a continuous query."""
    output: list[RunCopy | bytes] = []
    there: set[tuple[str, int, int]] = set()
    seen = {where: moment for where, moment in visible.times.items() if where[0] in query.outs}
    for topic in query.outs:
        for record in read_to_end(cluster.direct, topic):
            where = (topic, record.partition, record.offset)
            there.add(where)
            # A record that came last may not have been seen.
            seen_s = seen.get(where, record.timestamp / 1000)
            try:
                output.append(
                    FlowRecord.from_value(
                        record.value,
                        record.partition,
                        seen_s,
                        is_letter=topic == query.dead,
                        keeps_order=query.exactly_once,
                    )
                )
            except ValueError:
                output.append(record.value)
    recreated = frozenset(topic for topic in query.reads if scene.ledger.incarnations[topic])
    found = check_runs(wanted, output, epochs_of(Path(query.checkpoint)), recreated, scene.ledger.is_gone)
    check_withdrawn(found, seen, there)
    found.letters = check_letters(found, output)
    found.longest_held = check_held(found, output, [each for each in scene.slow if query.name == each.query])
    read = [each for each in output if isinstance(each, FlowRecord)]
    return found, Timeline((each.read_ms / 1000, each.seen_s) for each in read)


class _Copies:
    """The output of a query that copies, record by record; what else is of interest is gathered on the way."""

    def __init__(self, cluster: Cluster, query: Query) -> None:
        self._cluster = cluster
        self._query = query
        self._seen: dict[Log, set[int]] = defaultdict(set)
        self.times: list[tuple[int, float]] = []
        self.windows: Counter[tuple[int, int]] = Counter()

    def all(self) -> Iterator[TaskCopy | bytes]:
        """Read them."""
        for record in read_to_end(self._cluster.direct, self._query.out):
            try:
                copied = TaskCopy.from_value(record.value, record.timestamp, record.partition)
            except ValueError:
                yield record.value
                continue
            self.times.append((copied.read_ms, copied.written_s))
            if copied.offset not in self._seen[copied.log]:
                self._seen[copied.log].add(copied.offset)
                self.windows[copied.read_ms // _WINDOW_MS * _WINDOW_MS, copied.log.partition] += 1
            yield copied


def _totals(servers: list[str], query: Query, windows: Counter[tuple[int, int]]) -> tuple[Findings, Timeline]:
    counts: list[tuple[int, int, int]] = []
    times: list[tuple[float, float]] = []
    for record in read_to_end(servers, query.out):
        window, partition, count = record.value.decode().split("|")
        counts.append((int(window), int(partition), int(count)))
        times.append((record.timestamp / 1000, record.timestamp / 1000))
    newest = max((window for window, _ in windows), default=0)
    closed_before = newest - (WINDOW_S + query.watermark_s + _CLOSED_WITHIN_S) * 1000
    return check_totals(counts, windows, closed_before), Timeline(times)


def _batch_lost(servers: list[str], events: list[dict[str, object]]) -> int:
    done = {each["number"]: each["rows"] for each in events if each["event"] == "batch done" and "rows" in each}
    if not done:
        return 0
    found: dict[int, set[int]] = defaultdict(set)
    for record in read_to_end(servers, BATCH_OUT):
        number, row = record.value.decode().split("|")
        found[int(number)].add(int(row))
    return sum(int(str(rows)) - len(found[int(str(number))]) for number, rows in done.items())
