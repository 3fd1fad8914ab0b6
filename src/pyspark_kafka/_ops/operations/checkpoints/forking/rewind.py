"""Moves a checkpoint to another place in its log, in the same directory, with a backup.

1. All files are copied to the backup, `metadata` last, then a marker of completeness.
2. `metadata` is replaced by a note: from now on no query starts here.
3. Files are created, removed and written.
4. `metadata` is written again: the checkpoint is complete.

A program that dies before 2 leaves the former checkpoint, after 4 the new one, and in between one that is refused,
whose note names the backup.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from pyspark_kafka._ops.operations.checkpoints.batches import COMMITS, OFFSETS, batch_numbers
from pyspark_kafka._ops.operations.checkpoints.forking.backups import back_up, changed_meanwhile, note_of
from pyspark_kafka._ops.operations.checkpoints.forking.plan import METADATA
from pyspark_kafka._ops.operations.checkpoints.unfinished import check_note, unfinished_note
from pyspark_kafka.checkpoint.continuous_files import MESSAGES, OWNER, epoch_of_messages
from pyspark_kafka.errors import CheckpointError, ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark_kafka._ops.operations.checkpoints.forking.plan import ForkPlan
    from pyspark_kafka.checkpoint import CheckpointFiles

# A micro-batch query with new records writes its logs several times in this time, unless its trigger is slower.
QUIET_S = 60.0
_LOGS = (OFFSETS, COMMITS, MESSAGES)
# A query of many partitions writes some of its states in these.
_STATE_DIRECTORIES = 100
_TEMPORARY_FILES = 10
_VERSION = re.compile(r"[0-9]{1,18}")


def seconds_since_written(files: CheckpointFiles, now_s: Callable[[], float] = time.time) -> float | None:
    """Return the time since a query has last written its logs; None if the file system has no times.

    Runs on: any program; it lists each log and some directories of state, and reads the times of the newest files.
    """
    newest: list[int] = []
    for directory in _LOGS:
        names = files.scan(directory)
        latest = [str(number) for number in batch_numbers(names)[-1:]]
        if directory == MESSAGES:
            latest = sorted(names.files, key=lambda name: epoch_of_messages(name) or 0)[-1:]
        for name in (*latest, *(each for each in names.hidden if each.endswith(".tmp"))):
            status = files.status(f"{directory}/{name}")
            newest += [status.modified_ms] if status is not None and status.modified_ms is not None else []
    for name in _newest_states(files):
        status = files.status(name)
        newest += [status.modified_ms] if status is not None and status.modified_ms is not None else []
    owner = files.status(OWNER)
    newest += [owner.modified_ms] if owner is not None and owner.modified_ms is not None else []
    return None if not newest else max(0.0, now_s() - max(newest) / 1000)


def check_quiet(
    files: CheckpointFiles,
    *,
    removes: bool = False,
    quiet_s: float = QUIET_S,
    now_s: Callable[[], float] = time.time,
) -> None:
    """Refuse a checkpoint that was written a moment ago, or whose last batch may still run.

    Args:
        files: the checkpoint.
        removes: whether the plan removes files. A running query would then write into the remaining files without an
            error; a batch may take longer than `quiet_s`.
        quiet_s: seconds in which nothing was written.
        now_s: the clock, seconds since 1970-01-01 UTC.

    Raises:
        CheckpointError: condition CHECKPOINT_IN_USE.
    """
    since_s = seconds_since_written(files, now_s)
    if since_s is not None and since_s < quiet_s:
        raise CheckpointError(
            f"Checkpoint {files.shown} was written {since_s:.0f} s ago: the query may be running. Nothing was changed.",
            condition="CHECKPOINT_IN_USE",
            hint=f"Stop the query. If it is stopped, wait until nothing was written for {quiet_s:.0f} s, or pass "
            "--force.",
            parameters={"location": files.shown, "seconds": f"{since_s:.0f}"},
        )
    begun, finished = (batch_numbers(files.scan(log)) for log in (OFFSETS, COMMITS))
    if removes and begun and (not finished or finished[-1] < begun[-1]):
        raise CheckpointError(
            f"Batch {begun[-1]} of checkpoint {files.shown} has begun and is not finished: the query may be running. "
            "It would finish the batch among the files that are left. Nothing was changed.",
            condition="CHECKPOINT_IN_USE",
            hint="Stop the query. If it is stopped, pass --force.",
            parameters={"location": files.shown, "batch_id": begun[-1]},
        )


def check_finished(files: CheckpointFiles) -> None:
    """Refuse a checkpoint that another rewind, or a fork, has left unfinished.

    Raises:
        CheckpointError: condition CHECKPOINT_REWIND_UNFINISHED.
    """
    check_note(files, files.read(METADATA))


def apply_rewind(
    plan: ForkPlan, files: CheckpointFiles, backup: CheckpointFiles, tell: Callable[[str], object] = str
) -> None:
    """Back the checkpoint up, and move it to another place in its log.

    Runs on: any program; blocks on the file system. The query must not run.

    Args:
        plan: the files to write and to remove.
        files: the checkpoint.
        backup: the empty place of its copy.
        tell: called with each step.

    Raises:
        CheckpointError: the checkpoint is being written, or a file cannot be written. Then it is restored; if
            that fails, the condition is CHECKPOINT_REWIND_FAILED.
    """
    check_finished(files)
    former = files.read(METADATA)
    back_up(files, backup, plan.query_id, tell)
    logs = {log: set(batch_numbers(files.scan(log))) for log in (OFFSETS, COMMITS)}
    if max(logs[OFFSETS] | logs[COMMITS]) != plan.snapshot.last_number:
        raise changed_meanwhile(files, "a batch was written since the plan was made")
    note = f"The rewind has not ended: run `pyspark-kafka checkpoint rewind {files.shown} --restore {backup.shown}`."
    touched: list[str] = []
    try:
        files.replace(METADATA, unfinished_note(note, note_of(files, backup)))
        for name, data in plan.writes.items():
            touched.append(name)
            files.replace(name, data)
        for name in plan.removals:
            touched.append(name)
            files.delete(name)
        for name, data in plan.creates.items():
            # Before the write: it may fail after the file exists.
            touched.append(name)
            if not files.create(name, data):
                touched.remove(name)
                raise changed_meanwhile(files, f"{name} was written meanwhile")  # noqa: TRY301 - undone like any failure
        files.replace(METADATA, plan.metadata if plan.has_new_id or former is None else former)
    except BaseException as error:
        _undo(files, backup, touched, former, error)
        raise


def _newest_states(files: CheckpointFiles) -> Iterator[str]:
    """Yield the last files of states, in at most `_STATE_DIRECTORIES` directories: the listings must end soon."""
    directories = ["state"]
    for _ in range(_STATE_DIRECTORIES):
        if not directories:
            return
        directory = directories.pop()
        names = files.scan(directory)
        directories += [f"{directory}/{name}" for name in names.directories]
        being_written = [name for name in names.hidden if name.endswith(".tmp")][:_TEMPORARY_FILES]
        for name in (*([max(names.files, key=_version_of)] if names.files else []), *being_written):
            yield f"{directory}/{name}"


def _version_of(name: str) -> int:
    found = _VERSION.match(name)
    return -1 if found is None else int(found[0])


def _undo(
    files: CheckpointFiles, backup: CheckpointFiles, touched: Iterable[str], former: bytes | None, error: BaseException
) -> None:
    """Restore the changed files, `metadata` last."""
    try:
        for name in dict.fromkeys(touched):
            if not files.copy_from(backup, name):
                files.delete(name)
                continue
            directory, slash, base = name.rpartition("/")
            # After the file: the write of a file removes its checksum.
            files.copy_from(backup, f"{directory}{slash}.{base}.crc")
        if former is None:
            files.delete(METADATA)
        else:
            files.replace(METADATA, former)
    except ConnectorError as second:
        raise CheckpointError(
            f"The rewind of checkpoint {files.shown} failed ({error}), and the former one could not be put back "
            f"({second.message}). No query starts there; the backup {backup.shown} is whole.",
            condition="CHECKPOINT_REWIND_FAILED",
            hint=f"Run `pyspark-kafka checkpoint rewind {files.shown} --restore {backup.shown}`.",
            parameters={"location": files.shown, "backup": backup.shown},
        ) from error
