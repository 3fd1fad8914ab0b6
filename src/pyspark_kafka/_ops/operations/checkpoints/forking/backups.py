"""The backup of a checkpoint: made, checked for completeness and for its checkpoint, and restored.

A backup has all files of the checkpoint, `metadata` last, and after that a marker file: the copy is
complete, and the marker has the later id of the checkpoint's query. A checkpoint that is being changed names its backup
in the note in `metadata`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyspark_kafka._ops.operations.checkpoints.batches import OFFSETS
from pyspark_kafka._ops.operations.checkpoints.forking.apply import shared_reason
from pyspark_kafka._ops.operations.checkpoints.forking.plan import METADATA
from pyspark_kafka._ops.operations.checkpoints.forking.snapshot import walk_files
from pyspark_kafka._ops.operations.checkpoints.unfinished import read_unfinished, shown_backup, unfinished_note
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.errors import CheckpointError

_LAST = (METADATA, f".{METADATA}.crc")
# In a backup, after all other files.
_MARKER = ".backup-of-rewind"


@dataclass(frozen=True, slots=True)
class _Marker:
    """The marker of a backup: the id of its query, and the later id of the checkpoint."""

    query_id: str | None
    becomes: str | None


def back_up(
    files: CheckpointFiles, backup: CheckpointFiles, becomes: str | None, tell: Callable[[str], object] = str
) -> None:
    """Copy every file of a checkpoint to a backup, and check that the copy is complete.

    Args:
        files: the checkpoint.
        backup: the empty place of its copy.
        becomes: the later id of the query in the checkpoint; None without an id.
        tell: called with each step.

    Raises:
        CheckpointError: the backup has files, a file cannot be copied, or the checkpoint changes meanwhile.
    """
    names = list(_all_files(files))
    if any(walk_files(backup)):
        raise CheckpointError(
            f"The backup {backup.shown} exists already. Nothing was changed.",
            condition="CHECKPOINT_TARGET_INVALID",
            hint="Run the command again: its name has the time of the next second.",
            parameters={"location": backup.shown},
        )
    for number, name in enumerate(_in_order(names), 1):
        if number % 100 == 0:
            tell(f"Backing up file {number:,} of {len(names):,}")
        if not backup.copy_from(files, name):
            raise changed_meanwhile(files, f"{name} was removed while it was backed up")
    for name in names:
        was, now = backup.status(name), files.status(name)
        if was is None or now is None or was.size != now.size:
            raise changed_meanwhile(files, f"{name} changed while it was backed up")
    marker = json.dumps({"id": _query_id(files.read(METADATA)), "becomes": becomes})
    backup.replace(_MARKER, marker.encode())


def check_backup(files: CheckpointFiles, backup: CheckpointFiles) -> None:
    """Refuse a backup that shares files with the checkpoint, or is incomplete.

    A backup of `back_up` has all files of that time; damaged files are restored unchanged.

    Raises:
        CheckpointError: condition CHECKPOINT_TARGET_INVALID.
    """
    reason = shared_reason(files, backup)
    if reason:
        raise CheckpointError(
            f"{files.shown} cannot be restored from {backup.shown}: {reason}. Nothing was changed.",
            condition="CHECKPOINT_TARGET_INVALID",
            hint="Name the directory that the rewind has written beside the checkpoint.",
            parameters={"location": backup.shown, "reason": reason},
        )
    metadata, marker = backup.read(METADATA), _read_marker(backup)
    # A checkpoint may have no such file; a copy of it that was not finished has no marker.
    is_missing = metadata is None and (marker is None or marker.query_id is not None)
    is_unmarked = marker is None and (read_unfinished(metadata) is not None or not backup.scan(OFFSETS).files)
    if is_missing or is_unmarked:
        raise CheckpointError(
            f"{backup.shown} is not a whole backup of a checkpoint. Nothing was changed.",
            condition="CHECKPOINT_TARGET_INVALID",
            hint="Name the directory that the rewind has written beside the checkpoint.",
            parameters={"location": backup.shown},
        )


def is_marked(backup: CheckpointFiles) -> bool:
    """Return whether a copy has the marker of `back_up`: it is complete."""
    return _read_marker(backup) is not None


def check_belongs(files: CheckpointFiles, backup: CheckpointFiles) -> None:
    """Refuse a backup of another query.

    It belongs to the checkpoint if both have the id of one query, if the checkpoint got its id by the rewind that has
    written the backup, or if the note of an unfinished rewind names it. An empty place takes any backup.

    Raises:
        CheckpointError: condition CHECKPOINT_TARGET_INVALID.
    """
    if names_backup(files, backup):
        return
    data, marker = files.read(METADATA), _read_marker(backup)
    noted, has, of = read_unfinished(data), _query_id(data), _query_id(backup.read(METADATA))
    if noted is not None:
        reason = f"the note in its file {METADATA} names {shown_backup(files, noted) or 'no backup'}"
    elif has is None:
        if not any(_all_files(files)):
            return
        reason = f"its file {METADATA} has no id of a query, so nothing tells whether the backup is of it"
    elif has in (of, None if marker is None else marker.becomes):
        return
    else:
        reason = f"it is of query {has}, and the backup of query {of}"
    raise CheckpointError(
        f"{backup.shown} is not known to be a backup of checkpoint {files.shown}: {reason}. Nothing was changed.",
        condition="CHECKPOINT_TARGET_INVALID",
        hint="Name the directory that the rewind has written beside the checkpoint. To replace the checkpoint all the "
        "same, pass --force.",
        parameters={"location": backup.shown, "reason": reason},
    )


def names_backup(files: CheckpointFiles, backup: CheckpointFiles) -> bool:
    """Return whether the note of an unfinished rewind or restore of the checkpoint names this backup."""
    noted = read_unfinished(files.read(METADATA))
    return bool(noted) and noted in (note_of(files, backup), backup.shown, backup.location)


def restore(
    files: CheckpointFiles,
    backup: CheckpointFiles,
    tell: Callable[[str], object] = str,
    *,
    former: CheckpointFiles | None = None,
) -> bool:
    """Restore a checkpoint from its backup, whatever files it has now.

    Runs on: any program; blocks on the file system. The query must not run. Run again if it ends early.

    Args:
        files: the checkpoint.
        backup: the backup.
        tell: called with each step.
        former: the place of a copy of the present files; None without a copy. The remains of an unfinished rewind or
            restore, whose note names the backup, are not copied.

    Returns:
        Whether this copy was made.

    Raises:
        CheckpointError: the backup is not a backup, shares files with the checkpoint, or is incomplete; or files
            cannot be written.
    """
    check_backup(files, backup)
    metadata = backup.read(METADATA)
    copies = former is not None and not names_backup(files, backup) and any(_all_files(files))
    if former is not None and copies:
        back_up(files, former, _query_id(metadata), tell)
    files.replace(METADATA, unfinished_note(f"Restore it from {backup.shown}.", note_of(files, backup)))
    tell("Restoring the backup")
    names = _in_order(_all_files(backup))
    first = [name for name in names if name not in _LAST]
    # Copied before the first removal: an unreadable backup must not remove a file.
    for name in first:
        _copy_back(files, backup, name)
    kept = {*names, *_LAST}
    for name in list(_all_files(files)):
        if name not in kept:
            files.delete(name)
    if metadata is None:
        files.delete(METADATA)
    for name in names[len(first) :]:
        _copy_back(files, backup, name)
    return bool(copies)


def note_of(files: CheckpointFiles, backup: CheckpointFiles) -> str:
    """Return a backup for the note: its name relative to the checkpoint, because a location may hold a password."""
    name = backup.base_name
    is_beside = files.base_name and name and CheckpointFiles(files.beside(name)).overlap(backup) == "itself"
    return name if is_beside else backup.shown


def changed_meanwhile(files: CheckpointFiles, what: str) -> CheckpointError:
    """Build the error about a checkpoint that another program writes."""
    return CheckpointError(
        f"A query is writing checkpoint {files.shown}: {what}. The checkpoint is as the query left it.",
        condition="CHECKPOINT_IN_USE",
        hint="Stop the query, and run the command again.",
        parameters={"location": files.shown},
    )


def _copy_back(files: CheckpointFiles, backup: CheckpointFiles, name: str) -> None:
    if not files.copy_from(backup, name):
        raise CheckpointError(
            f"File {name} of the backup {backup.shown} was removed while checkpoint {files.shown} was restored. No "
            "query starts there, as it is not whole.",
            condition="CHECKPOINT_REWIND_FAILED",
            hint="Make sure that no program changes the backup, and restore it again; or restore another backup.",
            parameters={"location": files.shown, "backup": backup.shown, "name": name},
        )


def _query_id(metadata: bytes | None) -> str | None:
    """Return the id of the query; None without a readable id."""
    try:
        found = json.loads(metadata or b"")["id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) and found else None


def _read_marker(backup: CheckpointFiles) -> _Marker | None:
    try:
        value = json.loads(backup.read(_MARKER) or b"")
        return _Marker(value["id"], value["becomes"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _all_files(files: CheckpointFiles) -> Iterable[str]:
    """Return every file of a query, without temporary files of killed programs."""
    return (name for name in walk_files(files) if name != _MARKER and not _is_temporary(name.rpartition("/")[2]))


def _in_order(names: Iterable[str]) -> list[str]:
    """Return the names of files in the order in which a checkpoint is copied: `metadata` last.

    Checksums come after their files: a write of a file removes its checksum.
    """
    return sorted(names, key=lambda name: (name in _LAST, name.endswith(".crc"), name))


def _is_temporary(base: str) -> bool:
    return base.startswith(".") and base.endswith((".tmp", ".tmp.crc"))
