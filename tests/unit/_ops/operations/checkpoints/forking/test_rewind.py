"""A rewind that fails or dies at any of its file operations: the checkpoint is the former one, the new one, or refused
with its backup.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.checkpoint_files import write_checkpoint
from pyspark_kafka._ops.operations.checkpoints.forking.backups import restore
from pyspark_kafka._ops.operations.checkpoints.forking.places import AfterBatch
from pyspark_kafka._ops.operations.checkpoints.forking.plan import ForkPlan, ForkRequest, plan_fork
from pyspark_kafka._ops.operations.checkpoints.forking.rewind import (
    apply_rewind,
    check_finished,
    check_quiet,
    seconds_since_written,
)
from pyspark_kafka._ops.operations.checkpoints.forking.snapshot import read_snapshot
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.checkpoint.continuous_files import OWNER, owner_bytes
from pyspark_kafka.errors import CheckpointError

NEW_ID = "11111111-2222-3333-4444-555555555555"
ENDS = [{"t": {"0": 5}}, {"t": {"0": 9}}, {"t": {"0": 12}}]
# Everything that changes a file system.
_CHANGES = ("link", "replace", "remove", "open")


class _DiedError(BaseException):
    """The program ends here."""


def stateless(location: Path) -> Path:
    return write_checkpoint(location, ENDS)


def stateful(location: Path) -> Path:
    write_checkpoint(location, ENDS)
    for number in (1, 2, 3):
        path = location / "state" / "0" / "0" / f"{number}.delta"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d" % number)
        (path.parent / f".{number}.delta.crc").write_bytes(b"crc%d" % number)
    return location


def exactly_once(location: Path) -> Path:
    write_checkpoint(location, ENDS)
    CheckpointFiles(str(location)).replace(OWNER, owner_bytes("run"))
    record = '{"v":1,"owner":"o","group":"g","prefix":"p","lanes":1,"topics":{}}'
    (location / "continuous" / "transactions").write_text(record)
    return location


def planned(location: Path, *, drop_state: bool = False) -> ForkPlan:
    snapshot = read_snapshot(read_checkpoint(str(location)), 0)
    return plan_fork(snapshot, ForkRequest(AfterBatch(0), True, drop_state, NEW_ID, 1), None)


def content(location: Path, *, hidden: bool = False) -> dict[str, bytes]:
    return {
        str(path.relative_to(location)): path.read_bytes()
        for path in location.rglob("*")
        if path.is_file() and (hidden or not path.name.startswith("."))
    }


def rewind(location: Path, backup: Path, *, drop_state: bool = False) -> None:
    plan = planned(location, drop_state=drop_state)
    apply_rewind(plan, CheckpointFiles(str(location)), CheckpointFiles(str(backup)))


def test_rewind_continues_at_the_place_and_leaves_a_whole_backup(tmp_path: Path) -> None:
    location, backup = stateless(tmp_path / "query"), tmp_path / "backup"
    before = content(location, hidden=True)
    rewind(location, backup)
    copied = content(backup, hidden=True)
    assert copied.pop(".backup-of-rewind")
    assert copied == before
    made = read_checkpoint(str(location))
    assert made.position()["0"].json() == '{"t":{"0":5}}'
    assert made.history.last_finished == 3
    assert {name: data for name, data in content(location).items() if name in before} == before


def test_rewind_of_state_removes_its_later_versions_with_their_checksums(tmp_path: Path) -> None:
    location = stateful(tmp_path / "query")
    rewind(location, tmp_path / "backup")
    assert sorted(path.name for path in (location / "state" / "0" / "0").iterdir()) == [".1.delta.crc", "1.delta"]
    assert read_checkpoint(str(location)).history.begun == (0,)


@pytest.mark.parametrize("kind", ["dies", "fails"])
@pytest.mark.parametrize(
    ("make", "drop_state"), [(stateless, False), (stateful, False), (stateful, True), (exactly_once, False)]
)
def test_rewind_leaves_the_former_or_the_new_checkpoint_or_one_that_is_refused_with_its_backup(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], Path],
    drop_state: bool,
    kind: str,
) -> None:
    # Thousands of files are written, and no machine loses its power here.
    monkeypatch.setattr(os, "fsync", lambda _: None)
    template = make(tmp_path / "template")
    former = content(template)
    shutil.copytree(template, tmp_path / "done")
    rewind(tmp_path / "done", tmp_path / "done-backup", drop_state=drop_state)
    new = content(tmp_path / "done")
    outcomes = set()
    for point in range(1000):
        location, backup = tmp_path / "query", tmp_path / "backup"
        for path in (location, backup):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(template, location)
        plan = planned(location, drop_state=drop_state)
        count = [point]

        def change(name: str, count: list[int] = count) -> Callable[..., object]:
            real = getattr(os, name)

            def call(*args: object, **more: object) -> object:
                if name == "open" and not int(str(args[1])) & os.O_CREAT:
                    return real(*args, **more)
                count[0] -= 1
                if count[0] == -1 or (kind == "dies" and count[0] < 0):
                    raise _DiedError if kind == "dies" else OSError(5, "Input/output error")
                return real(*args, **more)

            return call

        with monkeypatch.context() as patch:
            for name in _CHANGES:
                patch.setattr(os, name, change(name))
            error: BaseException | None = None
            try:
                apply_rewind(plan, CheckpointFiles(str(location)), CheckpointFiles(str(backup)))
            except (_DiedError, CheckpointError) as caught:
                error = caught
        if count[0] >= 0:
            break
        now = content(location)
        # An error is undone.
        assert kind == "dies" or now == (new if error is None else former)
        files = CheckpointFiles(str(location))
        if now == former:
            outcomes.add("former")
            check_finished(files)
            continue
        if now == new:
            outcomes.add("new")
            continue
        outcomes.add("refused")
        with pytest.raises(CheckpointError, match=rf"\[CHECKPOINT_REWIND_UNFINISHED\] .*--restore {backup}"):
            check_finished(files)
        with pytest.raises(CheckpointError, match="CHECKPOINT_REWIND_UNFINISHED"):
            read_checkpoint(files).query_id()
        restore(files, CheckpointFiles(str(backup)))
        assert content(location) == former
        hidden = content(location, hidden=True)
        checksums = {name for name in content(template, hidden=True) if name.endswith(".crc")}
        assert {name for name in hidden if name.endswith(".crc")} >= checksums
    assert content(tmp_path / "query") == new
    assert outcomes >= ({"former", "refused"} if kind == "dies" else {"former"})


def test_restore_that_dies_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location, backup = stateful(tmp_path / "query"), tmp_path / "backup"
    former = content(location, hidden=True)
    rewind(location, backup)
    files, copy = CheckpointFiles(str(location)), CheckpointFiles(str(backup))
    real = os.replace
    for point in range(100):
        left = [point]

        def replace(*args: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise _DiedError
            real(*args)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", replace)
            try:
                restore(files, copy)
                break
            except _DiedError:
                pass
        if point:
            with pytest.raises(CheckpointError, match="CHECKPOINT_REWIND_UNFINISHED"):
                check_finished(files)
    assert point > 5
    assert content(location, hidden=True) == former


def test_batch_that_a_running_query_writes_meanwhile_is_left_alone(tmp_path: Path) -> None:
    location = stateless(tmp_path / "query")
    plan = planned(location)
    (location / "offsets" / "3").write_text("another program's")
    with pytest.raises(CheckpointError, match=r"\[CHECKPOINT_IN_USE\] .* a batch was written since the plan was made"):
        apply_rewind(plan, CheckpointFiles(str(location)), CheckpointFiles(str(tmp_path / "backup")))
    assert (location / "offsets" / "3").read_text() == "another program's"
    check_finished(CheckpointFiles(str(location)))


def test_batch_that_is_written_at_the_last_moment_ends_the_rewind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = stateless(tmp_path / "query")
    before = content(location)
    plan = planned(location)
    create = CheckpointFiles.create

    def late(self: CheckpointFiles, name: str, data: bytes) -> bool:
        create(self, name, b"another program's")
        return create(self, name, data)

    monkeypatch.setattr(CheckpointFiles, "create", late)
    with pytest.raises(CheckpointError, match=r"offsets/3 was written meanwhile"):
        apply_rewind(plan, CheckpointFiles(str(location)), CheckpointFiles(str(tmp_path / "backup")))
    assert content(location) == {**before, "offsets/3": b"another program's"}


def test_checkpoint_that_was_written_a_moment_ago_is_refused(tmp_path: Path) -> None:
    files = CheckpointFiles(str(stateless(tmp_path / "query")))
    with pytest.raises(CheckpointError, match=r"\[CHECKPOINT_IN_USE\] .* the query may be running") as caught:
        check_quiet(files)
    assert "--force" in caught.value.hint
    check_quiet(files, now_s=lambda: time.time() + 100)
    hour_ago = time.time() - 3600
    for log in ("offsets", "commits"):
        for path in (tmp_path / "query" / log).iterdir():
            os.utime(path, (hour_ago, hour_ago))
    check_quiet(files)
    assert 3500 < (seconds_since_written(files) or 0) < 4000


def test_file_that_is_being_written_counts_as_written_now(tmp_path: Path) -> None:
    location = stateless(tmp_path / "query")
    for path in [*(location / "offsets").iterdir(), *(location / "commits").iterdir()]:
        os.utime(path, (1, 1))
    (location / "offsets" / ".3.f00.tmp").write_text("")
    with pytest.raises(CheckpointError, match="CHECKPOINT_IN_USE"):
        check_quiet(CheckpointFiles(str(location)))


def test_batch_that_runs_for_long_ends_a_rewind_that_removes_files(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS, finished=2)
    for log in ("offsets", "commits"):
        for path in (tmp_path / log).iterdir():
            os.utime(path, (1, 1))
    files = CheckpointFiles(str(tmp_path))
    check_quiet(files)
    with pytest.raises(CheckpointError, match=r"\[CHECKPOINT_IN_USE\] Batch 2 of .* is not finished") as caught:
        check_quiet(files, removes=True)
    assert "--force" in caught.value.hint
    (tmp_path / "commits" / "2").write_text("v1\n{}")
    os.utime(tmp_path / "commits" / "2", (1, 1))
    check_quiet(files, removes=True)


@pytest.mark.parametrize("name", ["3.delta", ".3.delta.0b1c.TID7.tmp", "deeper/9.changelog"])
def test_state_that_is_being_written_counts_as_written_now(tmp_path: Path, name: str) -> None:
    location = stateful(tmp_path / "query")
    for path in location.rglob("*"):
        if path.is_file():
            os.utime(path, (1, 1))
    files = CheckpointFiles(str(location))
    check_quiet(files)
    (location / "state" / "0" / "0" / "deeper").mkdir()
    (location / "state" / "0" / "0" / name).write_text("")
    with pytest.raises(CheckpointError, match="CHECKPOINT_IN_USE"):
        check_quiet(files)


@pytest.mark.parametrize("metadata", [None, "This checkpoint is not finished. x", "whole, but without batches"])
def test_directory_that_is_no_backup_is_not_restored(tmp_path: Path, metadata: str | None) -> None:
    location, backup = stateless(tmp_path / "query"), tmp_path / "backup"
    backup.mkdir()
    if metadata is not None:
        (backup / "metadata").write_text(metadata)
    before = content(location)
    with pytest.raises(CheckpointError, match="is not a whole backup of a checkpoint"):
        restore(CheckpointFiles(str(location)), CheckpointFiles(str(backup)))
    assert content(location) == before


def test_checkpoint_that_cannot_be_put_back_names_its_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location, backup = stateless(tmp_path / "query"), tmp_path / "backup"
    plan = planned(location)
    real = os.link

    def full(*args: str) -> None:
        if "/query/" in str(args[1]):
            monkeypatch.setattr(os, "replace", broken)
            raise OSError(28, "No space left on device")
        real(*args)

    def broken(*args: str) -> None:  # noqa: ARG001
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(CheckpointError, match=rf"No query starts there; the backup {backup} is whole") as caught:
        apply_rewind(plan, CheckpointFiles(str(location)), CheckpointFiles(str(backup)))
    assert caught.value.condition == "CHECKPOINT_REWIND_FAILED"
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="CHECKPOINT_REWIND_UNFINISHED"):
        check_finished(CheckpointFiles(str(location)))
