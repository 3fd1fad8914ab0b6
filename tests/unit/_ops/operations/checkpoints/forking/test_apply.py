from __future__ import annotations

from pathlib import Path

import pytest

from kit.checkpoint_files import write_checkpoint
from pyspark_kafka._ops.operations.checkpoints.forking.apply import apply_fork, check_target
from pyspark_kafka._ops.operations.checkpoints.forking.places import AfterBatch
from pyspark_kafka._ops.operations.checkpoints.forking.plan import ForkPlan, ForkRequest, plan_fork
from pyspark_kafka._ops.operations.checkpoints.forking.rewind import check_finished
from pyspark_kafka._ops.operations.checkpoints.forking.snapshot import read_snapshot
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.errors import CheckpointError

NEW_ID = "11111111-2222-3333-4444-555555555555"
ENDS = [{"t": {"0": 5}}, {"t": {"0": 9}}]


def planned(source: Path) -> ForkPlan:
    snapshot = read_snapshot(read_checkpoint(str(source)), 0)
    return plan_fork(snapshot, ForkRequest(AfterBatch(0), False, False, NEW_ID, 1), None)


def content(location: Path) -> dict[str, bytes]:
    return {str(path.relative_to(location)): path.read_bytes() for path in location.rglob("*") if path.is_file()}


def test_fork_is_a_checkpoint_and_leaves_the_other_one_alone(tmp_path: Path) -> None:
    source, target = write_checkpoint(tmp_path / "source", ENDS), tmp_path / "deep" / "target"
    before = content(source)
    apply_fork(planned(source), CheckpointFiles(str(source)), CheckpointFiles(str(target)))
    assert content(source) == before
    made = read_checkpoint(str(target))
    assert made.query_id() == NEW_ID
    assert made.unfinished() is None
    assert made.position()["0"].json() == '{"t":{"0":5}}'


def test_target_with_anything_in_it_is_refused(tmp_path: Path) -> None:
    source = CheckpointFiles(str(write_checkpoint(tmp_path / "source", ENDS)))
    for name, reason in (("target/.hidden", "it has 1 files"), ("target2/a/b", "it has 1 files")):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text("x")
        with pytest.raises(CheckpointError, match=reason):
            check_target(source, CheckpointFiles(str(tmp_path / name.partition("/")[0])))
    (tmp_path / "empty").mkdir()
    check_target(source, CheckpointFiles(str(tmp_path / "empty")))


@pytest.mark.parametrize(("target", "reason"), [(".", "itself"), ("state/x", "within"), ("..", "within")])
def test_target_within_the_checkpoint_or_around_it_is_refused(tmp_path: Path, target: str, reason: str) -> None:
    source = write_checkpoint(tmp_path / "source", ENDS)
    with pytest.raises(CheckpointError, match=reason):
        check_target(CheckpointFiles(str(source)), CheckpointFiles(str(source / target)))


def test_target_within_the_checkpoint_by_a_link_or_beside_a_query_is_refused(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "source", ENDS)
    (tmp_path / "link").symlink_to(source)
    with pytest.raises(CheckpointError, match="within"):
        check_target(CheckpointFiles(str(source)), CheckpointFiles(str(tmp_path / "link" / "target")))
    source_uri = CheckpointFiles("s3://bucket/cp?region=eu-west-1")
    with pytest.raises(CheckpointError, match="within"):
        check_target(source_uri, CheckpointFiles("s3://bucket/cp/target?region=eu-west-1"))


class _DiedError(BaseException):
    """The program ends here."""


def test_fork_that_dies_at_any_point_is_refused_by_whoever_starts_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_checkpoint(tmp_path / "source", ENDS)
    plan = planned(source)
    (source / "sink").mkdir()
    (source / "sink" / "schemas").write_text("x")
    writes = CheckpointFiles._put_local
    for point in range(50):
        target = tmp_path / f"target-{point}"
        left = [point]

        def die(self: CheckpointFiles, *args: object, left: list[int] = left, **more: object) -> bool:
            if not left[0]:
                raise _DiedError
            left[0] -= 1
            return writes(self, *args, **more)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(CheckpointFiles, "_put_local", die)
            try:
                apply_fork(plan, CheckpointFiles(str(source)), CheckpointFiles(str(target)))
                break
            except _DiedError:
                pass
        if point:
            with pytest.raises(CheckpointError, match="CHECKPOINT_REWIND_UNFINISHED"):
                check_finished(CheckpointFiles(str(target)))
            with pytest.raises(CheckpointError, match="the rest of a fork that was not finished"):
                check_target(CheckpointFiles(str(source)), CheckpointFiles(str(target)))
        else:
            assert not target.exists()
    assert point > 4
    assert read_checkpoint(str(target)).query_id() == NEW_ID


def test_file_that_is_removed_while_it_is_copied_is_an_error(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "source", ENDS)
    (source / "sink").mkdir()
    (source / "sink" / "schemas").write_text("x")
    plan = planned(source)
    (source / "sink" / "schemas").unlink()
    with pytest.raises(CheckpointError, match=r"\[CHECKPOINT_IN_USE\] File sink/schemas .* was removed while it was"):
        apply_fork(plan, CheckpointFiles(str(source)), CheckpointFiles(str(tmp_path / "target")))
