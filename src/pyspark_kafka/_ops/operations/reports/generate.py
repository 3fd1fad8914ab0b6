"""The report of a checkpoint: reads it, queries the brokers if they are named, and writes the page."""

from __future__ import annotations

import errno
import math
import os
import shutil
import time
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import CheckpointKind, read_checkpoint
from pyspark_kafka._ops.operations.lag.api import lag
from pyspark_kafka._ops.operations.lag.values import FAULTS
from pyspark_kafka._ops.operations.reports.event_files import event_lines
from pyspark_kafka._ops.operations.reports.history import read_history
from pyspark_kafka._ops.operations.reports.page import render_page
from pyspark_kafka._ops.operations.reports.progress import merge_batches, progress_batches, read_event_log
from pyspark_kafka._ops.operations.reports.render import ReportData, build_page
from pyspark_kafka._ops.operations.text import span_text
from pyspark_kafka.errors import CheckpointError, ConnectorError, OptionError, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import QueryCheckpoint
    from pyspark_kafka._ops.operations.lag.values import LagReport
    from pyspark_kafka._ops.operations.reports.history import CheckpointHistory
    from pyspark_kafka._ops.operations.reports.timeline import BatchStats

_MAX_WARNINGS = 10
_NO_PLACE = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV})
_MADE_BY = {
    CheckpointKind.EMPTY: "The query has not begun a batch yet.",
    CheckpointKind.MICRO_BATCH: "The query runs in micro-batches.",
    CheckpointKind.CONTINUOUS: "The query runs continuously; its epochs are shown as batches.",
    CheckpointKind.SPARK_CONTINUOUS: "The query runs by Spark's continuous trigger; its epochs are shown as batches.",
}


def gather_report(
    location: str,
    *,
    batches: int,
    progress: Path | None = None,
    watch: Callable[[int, int], None] = lambda _done, _all: None,
) -> ReportData:
    """Read the content of a page.

    Runs on: any program; blocks on the file system.

    Args:
        location: of the checkpoint, as for `CheckpointFiles`.
        batches: the number of last batches.
        progress: Spark's progress of the query: an event log, file or directory, or a file with one progress a line.
        watch: called with the number of read batches and their total.

    Raises:
        CheckpointError: there is no checkpoint, or a file of it cannot be read.
        ConnectorError: the file with the progress cannot be read.
    """
    checkpoint = read_checkpoint(location)
    history = read_history(checkpoint, batches, watch)
    query_id, warnings = _query_id(checkpoint)
    shown: list[BatchStats] = list(history.batches)
    if progress is not None:
        told = _read_progress(progress, query_id)
        shown = merge_batches(shown, told)[-batches:]
        if not told:
            warnings.append(f"{progress} has no progress of a batch of this query.")
    return ReportData(
        title=f"Query {query_id or 'without an id'}",
        place=f"checkpoint {checkpoint.location}",
        batches=shown,
        made_ms=int(time.time() * 1000),
        positions={each: at for offset in history.positions.values() for each, at in offset.partitions.items()},
        rows=history.rows,
        sentences=(_MADE_BY[checkpoint.kind()], *_about(history)),
        warnings=tuple(warnings),
    )


def add_lag(report: ReportData, options: Mapping[str, Any], location: str) -> ReportData:
    """Return the same report with the lag of each partition; an unknown value is a warning.

    Runs on: any program; blocks for about 15 s at most.

    Args:
        report: of the checkpoint.
        options: of a connection, or of a whole query, as Spark takes them.
        location: of the checkpoint.

    Raises:
        OptionError: the options are not valid.
    """
    try:
        measured = lag(options, checkpoint=location)
    except OptionError:
        raise
    except ConnectorError as error:
        return replace(report, warnings=(*report.warnings, f"How far the query is behind is not known: {error}"))
    behind = {each.topic_partition: each.records_behind for each in measured if each.records_behind is not None}
    missing = list(dict.fromkeys(reason for each in measured for reason in each.missing))
    lost = [each for each in measured if each.state in FAULTS]
    faults = [
        f"{each.topic}-{each.partition}: the position is {each.state.value}"
        + (f", {each.records_lost:,} records" if each.records_lost else "")
        for each in lost
    ]
    return replace(
        report,
        behind=behind,
        sentences=(*report.sentences, *_headroom_sentences(measured)),
        warnings=(*report.warnings, *_few(faults), *_few(missing)),
    )


def _few(texts: list[str]) -> list[str]:
    left = len(texts) - _MAX_WARNINGS
    return texts if left <= 0 else [*texts[:_MAX_WARNINGS], f"{left:,} more sentences like these are left out."]


def _headroom_sentences(report: LagReport) -> list[str]:
    """Return the partition whose records brokers delete first, if any."""
    limited = [each for each in report if each.headroom_s is not None and math.isfinite(each.headroom_s)]
    if not limited:
        return []
    first = min(limited, key=lambda each: each.headroom_s or 0.0)
    left = span_text((first.headroom_s or 0.0) * 1000)
    return [f"Brokers may delete the next record of {first.topic}-{first.partition} in {left}."]


def write_report(report: ReportData, file: Path) -> None:
    """Write the page of a report; an existing file is replaced atomically, if its directory allows that.

    Raises:
        MissingDependencyError: a package of the extra `report` is missing; nothing was written.
        ConnectorError: the file cannot be written.
    """
    # JSON can contain half a character, for which UTF-8 has no bytes.
    page = render_page(build_page(report)).encode("utf-8", "backslashreplace")
    try:
        _replace(file, page)
    except OSError as error:
        raise ConnectorError(
            f"The report cannot be written to {file}: {error.strerror}. The checkpoint was only read.",
            condition="REPORT_NOT_WRITTEN",
            hint="Name a file in a directory that exists and that you may write to.",
            parameters={"file": file},
        ) from error


def _replace(file: Path, data: bytes) -> None:
    if file.exists() and not file.is_file():
        # Such as /dev/stdout, which cannot be replaced.
        file.write_bytes(data)
        return
    # The target of a link is replaced, not the link.
    target = Path(os.path.realpath(file))
    try:
        _take_the_place(target, data)
    except OSError as error:
        # The user may have the right to write this file only, or it may be a mount point.
        if error.errno not in _NO_PLACE or not target.exists():
            raise
        target.write_bytes(data)


def _take_the_place(target: Path, data: bytes) -> None:
    temporary = target.with_name(f".report-{uuid.uuid4().hex}.tmp")
    try:
        temporary.write_bytes(data)
        with suppress(FileNotFoundError):
            # Refused if it is read-only.
            target.open("r+b").close()
            shutil.copymode(target, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _query_id(checkpoint: QueryCheckpoint) -> tuple[str | None, list[str]]:
    try:
        return checkpoint.query_id(), []
    except CheckpointError as error:
        return None, [str(error)]


def _about(history: CheckpointHistory) -> list[str]:
    found = []
    if history.older:
        found.append(f"The page shows the last {len(history.batches):,} batches; {history.older:,} are older.")
    if not history.has_end_times:
        found.append(
            "The files of the checkpoint were all written at once, as a copy is: how long batches took is not known."
        )
    if history.moved:
        numbers = listed([str(each) for each in history.moved], noun="batches")
        found.append(f"A fork or a rewind has moved the query, as batch {numbers}: it read nothing of its own.")
    if history.other_sources:
        names = ", ".join(history.other_sources)
        found.append(f"Sources that are not Kafka's are left out: {names}.")
    return found


def _read_progress(file: Path, query_id: str | None) -> list[BatchStats]:
    try:
        return progress_batches(read_event_log(event_lines(file)), query_id)
    except OSError as error:
        raise ConnectorError(
            f"The file of --progress, {file}, cannot be read: {error.strerror or error}. No page was written.",
            condition="REPORT_PROGRESS_UNREADABLE",
            hint="Pass the path of a file that you may read.",
            parameters={"file": file},
        ) from error
