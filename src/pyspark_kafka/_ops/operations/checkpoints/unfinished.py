"""The note in `metadata` of a checkpoint that a fork, a rewind or a restore has not finished: no query starts there.

As long as the file has this note, it has no id of a query: Spark, continuous queries and exactly-once sinks end with an
error that names the file.
"""

from __future__ import annotations

import json

from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.errors import CheckpointError

_UNFINISHED = "This checkpoint is not finished"


def unfinished_note(told: str, backup: str = "") -> bytes:
    """Return the content of `metadata` while files are written: not JSON, so no program reads it as the id of a query.

    Args:
        told: the next step, for people.
        backup: the place of the former checkpoint, without secrets: everybody who may list checkpoints can read the
            note.
    """
    return f"{_UNFINISHED}. {told}\n{json.dumps({'backup': backup})}\n".encode()


def read_unfinished(data: bytes | None) -> str | None:
    """Return the backup's place for an unfinished checkpoint, "" without a backup; None if it is finished."""
    text = (data or b"").decode(errors="replace")
    if not text.startswith(_UNFINISHED):
        return None
    try:
        return str(json.loads(text.partition("\n")[2])["backup"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""


def shown_backup(files: CheckpointFiles, noted: str) -> str:
    """Return the shown form of the place in a note; empty without a place."""
    if not noted:
        return ""
    return CheckpointFiles(noted if "/" in noted or not files.base_name else files.beside(noted)).shown


def check_note(files: CheckpointFiles, metadata: bytes | None) -> None:
    """Refuse a checkpoint whose file `metadata` is the note.

    Args:
        files: the checkpoint.
        metadata: the content of the file; None if it is missing.

    Raises:
        CheckpointError: condition CHECKPOINT_REWIND_UNFINISHED.
    """
    noted = read_unfinished(metadata)
    if noted is None:
        return
    backup = shown_backup(files, noted)
    raise CheckpointError(
        f"Checkpoint {files.shown} is not whole: a fork or a rewind of it was not finished.",
        condition="CHECKPOINT_REWIND_UNFINISHED",
        hint=f"Run `pyspark-kafka checkpoint rewind {files.shown} --restore {backup}`."
        if backup
        else "Remove the directory, and fork again.",
        parameters={"location": files.shown, "backup": backup},
    )
