from __future__ import annotations

from pathlib import Path

import pytest

from kit.checkpoint_files import write_checkpoint
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka._ops.operations.checkpoints.unfinished import check_note, read_unfinished, unfinished_note
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.errors import CheckpointError


def test_note_of_an_unfinished_checkpoint_names_its_backup_and_is_no_json() -> None:
    note = unfinished_note("Do this.", "/b")
    assert note.startswith(b"This checkpoint is not finished. Do this.\n")
    assert read_unfinished(note) == "/b"
    assert read_unfinished(note[:-20]) == ""
    assert read_unfinished(b'{"id":"x"}') is None
    assert read_unfinished(None) is None


def test_checkpoint_without_the_note_is_not_refused(tmp_path: Path) -> None:
    check_note(CheckpointFiles(str(tmp_path)), b'{"id":"x"}')
    check_note(CheckpointFiles(str(tmp_path)), None)


def test_note_of_a_fork_has_no_backup_to_restore(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError) as caught:
        check_note(CheckpointFiles(str(tmp_path)), unfinished_note("x"))
    assert caught.value.hint == "Remove the directory, and fork again."


def test_query_of_an_unfinished_checkpoint_has_no_id_and_the_backup_is_named(tmp_path: Path) -> None:
    location = write_checkpoint(tmp_path / "query", [{"t": {"0": 5}}])
    (location / "metadata").write_bytes(unfinished_note("x", "query.before-1"))
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(str(location)).query_id()
    assert caught.value.condition == "CHECKPOINT_REWIND_UNFINISHED"
    assert caught.value.hint == (
        f"Run `pyspark-kafka checkpoint rewind {location} --restore {tmp_path}/query.before-1`."
    )
