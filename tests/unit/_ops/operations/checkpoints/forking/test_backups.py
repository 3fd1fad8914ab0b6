"""What is restored, and what is refused before anything is removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit.checkpoint_files import write_checkpoint
from pyspark_kafka._ops.operations.checkpoints.forking.backups import (
    back_up,
    check_belongs,
    is_marked,
    names_backup,
    note_of,
    restore,
)
from pyspark_kafka._ops.operations.checkpoints.forking.places import AfterBatch
from pyspark_kafka._ops.operations.checkpoints.forking.plan import ForkRequest, plan_fork
from pyspark_kafka._ops.operations.checkpoints.forking.rewind import apply_rewind, check_finished
from pyspark_kafka._ops.operations.checkpoints.forking.snapshot import read_snapshot
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka._ops.operations.checkpoints.unfinished import read_unfinished, shown_backup, unfinished_note
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.errors import CheckpointError

NEW_ID = "11111111-2222-3333-4444-555555555555"
ENDS = [{"t": {"0": 5}}, {"t": {"0": 9}}, {"t": {"0": 12}}]


def files_of(location: Path) -> CheckpointFiles:
    return CheckpointFiles(str(location))


def content(location: Path) -> dict[str, bytes]:
    return {str(path.relative_to(location)): path.read_bytes() for path in location.rglob("*") if path.is_file()}


def rewind(location: Path, backup: Path) -> None:
    snapshot = read_snapshot(read_checkpoint(str(location)), 0)
    apply_rewind(
        plan_fork(snapshot, ForkRequest(AfterBatch(0), True, False, NEW_ID, 1), None),
        files_of(location),
        files_of(backup),
    )


@pytest.mark.parametrize(
    ("checkpoint", "backup", "reason"),
    [
        ("query", "query", "itself"),
        ("query", "link", "itself"),
        ("query", "query/backup", "within"),
        ("query/a", "query", "within"),
    ],
)
def test_backup_that_shares_files_with_the_checkpoint_is_refused(
    tmp_path: Path, checkpoint: str, backup: str, reason: str
) -> None:
    write_checkpoint(tmp_path / "query", ENDS)
    write_checkpoint(tmp_path / "query" / "backup", ENDS)
    (tmp_path / "link").symlink_to(tmp_path / "query")
    before = content(tmp_path)
    with pytest.raises(CheckpointError, match=rf"\[CHECKPOINT_TARGET_INVALID\] .*{reason}"):
        restore(files_of(tmp_path / checkpoint), files_of(tmp_path / backup))
    assert content(tmp_path) == before


def test_checkpoint_without_the_file_metadata_is_restored_without_it(tmp_path: Path) -> None:
    location, backup = write_checkpoint(tmp_path / "query", ENDS), tmp_path / "backup"
    (location / "metadata").unlink()
    before = content(location)
    rewind(location, backup)
    assert "metadata" in content(location)
    check_belongs(files_of(location), files_of(backup))
    restore(files_of(location), files_of(backup))
    assert content(location) == before


def test_file_that_the_backup_has_lost_ends_the_restore_before_anything_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location, backup = write_checkpoint(tmp_path / "query", ENDS), tmp_path / "backup"
    rewind(location, backup)
    before = content(location)
    real = CheckpointFiles.copy_from

    def copy(self: CheckpointFiles, other: CheckpointFiles, name: str) -> bool:
        (backup / "offsets" / "1").unlink(missing_ok=True)
        return real(self, other, name)

    monkeypatch.setattr(CheckpointFiles, "copy_from", copy)
    with pytest.raises(CheckpointError, match=r"\[CHECKPOINT_REWIND_FAILED\] File offsets/1 of the backup"):
        restore(files_of(location), files_of(backup))
    assert {**before, "metadata": b""} == {**content(location), "metadata": b""}
    with pytest.raises(CheckpointError, match="CHECKPOINT_REWIND_UNFINISHED"):
        check_finished(files_of(location))


@pytest.mark.parametrize("content_now", [b"v1", b"v1\n{}\n{}\n" + b"-" * 1_000], ids=["smaller", "larger"])
def test_backup_of_a_checkpoint_whose_file_changes_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content_now: bytes
) -> None:
    location, backup = write_checkpoint(tmp_path / "query", ENDS), tmp_path / "backup"
    real = CheckpointFiles.copy_from

    def copy(self: CheckpointFiles, other: CheckpointFiles, name: str) -> bool:
        copied = real(self, other, name)
        if name == "offsets/1":
            (location / name).write_bytes(content_now)
        return copied

    monkeypatch.setattr(CheckpointFiles, "copy_from", copy)
    with pytest.raises(CheckpointError, match="offsets/1 changed while it was backed up"):
        back_up(files_of(location), files_of(backup), NEW_ID)
    assert not is_marked(files_of(backup))


def test_backup_of_another_query_is_refused(tmp_path: Path) -> None:
    location, backup = write_checkpoint(tmp_path / "query", ENDS), write_checkpoint(tmp_path / "other", ENDS)
    check_belongs(files_of(location), files_of(backup))
    (backup / "metadata").write_text(json.dumps({"id": NEW_ID}))
    with pytest.raises(CheckpointError, match=rf"is of query .*, and the backup of query {NEW_ID}\.") as caught:
        check_belongs(files_of(location), files_of(backup))
    assert "--force" in caught.value.hint
    (location / "metadata").unlink()
    with pytest.raises(CheckpointError, match="no id of a query"):
        check_belongs(files_of(location), files_of(backup))
    check_belongs(files_of(tmp_path / "empty"), files_of(backup))


def test_backup_belongs_to_the_query_that_the_rewind_has_made(tmp_path: Path) -> None:
    location, backup = write_checkpoint(tmp_path / "query", ENDS), tmp_path / "backup"
    back_up(files_of(location), files_of(backup), NEW_ID)
    (location / "metadata").write_text(json.dumps({"id": NEW_ID}))
    check_belongs(files_of(location), files_of(backup))


@pytest.mark.parametrize(("noted", "said"), [("query-backup-2", "names .*/query-backup-2"), ("", "names no backup")])
def test_backup_that_the_note_of_the_checkpoint_does_not_name_is_refused(tmp_path: Path, noted: str, said: str) -> None:
    location, backup = write_checkpoint(tmp_path / "query", ENDS), write_checkpoint(tmp_path / "query-backup-1", ENDS)
    (location / "metadata").write_bytes(unfinished_note("x", noted))
    with pytest.raises(CheckpointError, match=said):
        check_belongs(files_of(location), files_of(backup))
    (location / "metadata").write_bytes(unfinished_note("x", "query-backup-1"))
    check_belongs(files_of(location), files_of(backup))


def test_restore_is_undone_by_the_copy_of_what_it_removes(tmp_path: Path) -> None:
    location, backup, former = write_checkpoint(tmp_path / "query", ENDS), tmp_path / "backup", tmp_path / "former"
    rewind(location, backup)
    rewound = content(location)
    assert restore(files_of(location), files_of(backup), former=files_of(former))
    assert content(location) != rewound
    check_belongs(files_of(location), files_of(former))
    restore(files_of(location), files_of(former))
    assert content(location) == rewound
    # What a rewind that was killed has left is not worth a copy.
    (location / "metadata").write_bytes(unfinished_note("x", "backup"))
    assert not restore(files_of(location), files_of(backup), former=files_of(tmp_path / "second"))
    assert not (tmp_path / "second").exists()


def test_password_of_a_location_is_neither_written_nor_shown() -> None:
    files = CheckpointFiles("s3://KEY:SECRET@bucket/cp?region=eu-west-1")
    beside = CheckpointFiles("s3://KEY:SECRET@bucket/cp-backup-1?region=eu-west-1")
    elsewhere = CheckpointFiles("s3://KEY:SECRET@other/cp")
    assert note_of(files, beside) == "cp-backup-1"
    assert shown_backup(files, "cp-backup-1") == "s3://…@bucket/cp-backup-1"
    assert "SECRET" not in note_of(files, elsewhere) + shown_backup(files, elsewhere.location)


def test_note_of_a_rewind_names_its_backup_without_the_location(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location, backup = write_checkpoint(tmp_path / "query", ENDS), tmp_path / "backup"
    notes: list[bytes] = []
    real = CheckpointFiles.replace

    def note(self: CheckpointFiles, name: str, data: bytes) -> None:
        notes.append(data)
        real(self, name, data)

    monkeypatch.setattr(CheckpointFiles, "replace", note)
    rewind(location, backup)
    assert [noted for data in notes if (noted := read_unfinished(data)) is not None] == ["backup"]
    (location / "metadata").write_bytes(unfinished_note("x", "backup"))
    assert names_backup(files_of(location), files_of(backup))
    with pytest.raises(CheckpointError, match=f"--restore {backup}"):
        check_finished(files_of(location))
