"""The result of a run: what was found, and the tables."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from chaos.continuous.checker import KillsFindings
from chaos.continuous.faults import FAULTS_OF_FLOWS
from chaos.faults import FAULTS, Strike
from chaos.timeline import Timeline
from kit.log_checker import Findings, Kind
from kit.marked_page import table

# A query may begin to feel a fault, or still feel it, for this time after the fault has healed.
_AFTERMATH_S = 10.0
_ERROR_CHARACTERS = 300


@dataclass
class Outcome:
    """All that is known at the end of a run.

    Attributes:
        findings: of each query.
        times: of each query that copies, for each record when the source had it and when the output had it; of the
            others the second one twice.
        ended: time, query and error of each query that ended.
        batch_jobs: of each kind of batch job how many were done.
        batch_failures: time, job and error of those that failed.
        batch_wrong: batch reads that gave something else than what is there.
        batch_lost: rows of batch writes that were done and are not there.
        vanished: records that the cluster acknowledged and does not have: its fault, and no query's.
        false_alarms: reports of data loss where nothing was lost that a query had not read.
        failed_faults: why a fault could not be brought about or did not heal: a matter of the test.
        begin: when the faults began.
        end: when they ended.
    """

    strikes: Sequence[Strike]
    findings: Mapping[str, Findings]
    times: Mapping[str, Timeline]
    ended: Sequence[tuple[float, str, str]]
    batch_jobs: Mapping[str, int]
    batch_failures: Sequence[tuple[float, str, str]]
    batch_wrong: Sequence[str]
    batch_lost: int
    vanished: int
    false_alarms: Sequence[str]
    exactly_once: frozenset[str]
    not_caught_up: Sequence[str]
    begin: float
    end: float
    seed: int
    failed_faults: Sequence[str] = ()
    notes: list[str] = field(default_factory=list)

    @property
    def lost(self) -> int:
        """Records that no query may have left out."""
        return sum(each["lost"] for each in self.findings.values()) + self.batch_lost

    @property
    def duplicated_once(self) -> int:
        """Duplicates where there must be none."""
        return sum(self.findings[name]["duplicated"] for name in self.exactly_once)

    @property
    def read_twice(self) -> int:
        """Records that a source gave twice."""
        return sum(each["read twice"] for each in self.findings.values())

    @property
    def anomalies(self) -> dict[str, int]:
        """What should be 0 and is not."""
        found: Counter[str] = Counter()
        for name, each in self.findings.items():
            found.update(each.anomalies(exactly_once=name in self.exactly_once))
        found["lost"] += self.batch_lost
        found.update(
            {
                "false data-loss reports": len(self.false_alarms),
                "wrong batch reads": len(self.batch_wrong),
                "queries ended": len(self.ended),
                "queries that did not catch up": len(self.not_caught_up),
                "faults that failed": len(self.failed_faults),
            }
        )
        return {name: count for name, count in found.items() if count}

    @property
    def counts(self) -> dict[str, int]:
        """What was done, and all that should be 0."""
        kinds = {kind: 0 for kind in get_args(Kind) if kind not in ("duplicated", "torn", "miscounted")}
        ours = {"queries ended": 0, "false data-loss reports": 0, "wrong batch reads": 0}
        return {
            "minutes": round((self.end - self.begin) / 60),
            "faults": len(self.strikes),
            "records out": sum(found.records for found in self.findings.values()),
            **kinds,
            "duplicated": 0,
            **ours,
            **self.anomalies,
        }

    def longest_gap(self, query: str) -> float:
        """Return a query's longest time without a record though there was one to read."""
        return self.times[query].longest_gap(self.begin, self.end + _AFTERMATH_S)

    def gaps(self, query: str) -> list[float]:
        """Return a query's longest time without a record in each fault."""
        return [self.times[query].longest_gap(strike.begin, strike.end + _AFTERMATH_S) for strike in self.strikes]

    def table_of_faults(self) -> str:
        """Return a line per kind of fault, in Markdown."""
        heads = ("fault", "times", "recovered in, p50", "max", "longest without a record", "queries ended")
        rows = []
        for kind in (*FAULTS, *FAULTS_OF_FLOWS):
            of_kind = [strike for strike in self.strikes if strike.kind == kind]
            if not of_kind:
                continue
            recoveries = [
                seconds
                for strike in of_kind
                for times in self.times.values()
                if (seconds := times.time_to_recover(strike.begin)) is not None
            ]
            gaps = [
                times.longest_gap(strike.begin, strike.end + _AFTERMATH_S)
                for strike in of_kind
                for times in self.times.values()
            ]
            ended = sum(
                any(strike.begin <= moment <= strike.end + _AFTERMATH_S for strike in of_kind)
                for moment, _, _ in self.ended
            )
            middle = _seconds(statistics.median(recoveries)) if recoveries else ""
            worst = _seconds(max(recoveries)) if recoveries else ""
            rows.append([kind, len(of_kind), middle, worst, _seconds(max(gaps, default=0.0)), ended])
        return table(heads, rows)

    def table_of_queries(self) -> str:
        """Return a line per query, in Markdown."""
        kinds: tuple[Kind, ...] = ("lost", "duplicated", "read twice")
        heads = ("query", "records out", *kinds, "ended", "longest without a record", "delay p50", "max")
        rows = []
        for name, found in self.findings.items():
            gap = self.longest_gap(name)
            delays = self.times[name].delays(self.begin)
            shown = (
                [_seconds(delays[len(delays) // 2]), _seconds(delays[-1])] if delays and delays[-1] > 0 else ["", ""]
            )
            ended = sum(query == name for _, query, _ in self.ended)
            rows.append([name, found.records, *(found[kind] for kind in kinds), ended, _seconds(gap), *shown])
        return table(heads, rows)

    def summary(self) -> str:
        """Return what is counted over all of it."""
        minutes = (self.end - self.begin) / 60
        jobs = ", ".join(f"{count} times {job.replace('_', ' ')}" for job, count in sorted(self.batch_jobs.items()))
        parts = [
            f"Seed {self.seed}, {minutes:.1f} minutes of faults, {len(self.strikes)} of them.",
            f"Queries ended: {len(self.ended)}.",
            f"Records lost: {self.lost}.",
            f"Duplicated under exactly once: {self.duplicated_once}.",
            f"Read twice by the source: {self.read_twice}.",
            f"False data-loss reports: {len(self.false_alarms)}.",
            f"Batch jobs done: {jobs or 'none'}; failed: {len(self.batch_failures)};",
            f"with a wrong result: {len(self.batch_wrong)}.",
            f"Records that the cluster itself lost: {self.vanished}.",
        ]
        flows = [each for each in self.findings.values() if isinstance(each, KillsFindings)]
        if flows:
            parts += [
                f"Dead letters: {sum(each.letters for each in flows)};",
                f"misdirected: {sum(each['misdirected'] for each in flows)}.",
                f"Out of order: {sum(each['out of order'] for each in flows)}.",
                "Longest time of a lane's record while another lane was slow:",
                f"{max(each.longest_held for each in flows):.1f} s.",
                f"Runs of the continuous queries: {sum(each.runs for each in flows)}.",
            ]
        return " ".join(parts)

    def text(self) -> str:
        """Return everything that belongs into the page."""
        return f"{self.summary()}\n\n{self.table_of_faults()}\n\n{self.table_of_queries()}"

    def details(self) -> str:
        """Return what people need to find out why."""
        lines = [f"{name}: {count}" for name, count in self.anomalies.items()]
        lines += [f"a fault failed: {error}" for error in self.failed_faults]
        lines += [f"query {query} ended at {moment:.1f}: {error}" for moment, query, error in self.ended]
        failures = [(moment, job, error[:_ERROR_CHARACTERS]) for moment, job, error in self.batch_failures]
        lines += [f"{job} failed at {moment:.1f}: {error}" for moment, job, error in failures]
        lines += [f"wrong batch read: {each}" for each in self.batch_wrong]
        lines += [f"false report: {each}" for each in self.false_alarms[:20]]
        lines += [
            f"{query}, {what}: {example}"
            for query, found in self.findings.items()
            for what, examples in found.examples.items()
            for example in examples
        ]
        return "\n".join([*lines, *self.notes])


def _seconds(value: float) -> str:
    return "never" if math.isinf(value) else f"{value:.1f} s"
