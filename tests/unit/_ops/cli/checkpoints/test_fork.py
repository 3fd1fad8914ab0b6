from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kit.checkpoint_files import QUERY_ID, write_checkpoint
from kit.programs.cli import invoke, warnings_of
from pyspark_kafka._ops.cli.checkpoints import fork
from pyspark_kafka._ops.operations.checkpoints.forking.apply import apply_fork
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka._ops.operations.checkpoints.unfinished import unfinished_note
from pyspark_kafka.checkpoint import CheckpointFiles

ENDS = [{"t": {"0": 5}}, {"t": {"0": 9}}]


def content(location: Path) -> dict[str, bytes]:
    return {str(path.relative_to(location)): path.read_bytes() for path in location.rglob("*") if path.is_file()}


def test_plan_has_counts_with_separators_at_the_right_edge(tmp_path: Path) -> None:
    place = write_checkpoint(tmp_path / "query", [{"t": {"0": 5, "1": 18_856}}, {"t": {"0": 9, "1": 20_856}}])
    lines = invoke("checkpoint", "rewind", str(place), "--batch", "0").stdout.splitlines()
    assert lines[:3] == [
        "source  topic  partition   from     to  read again  skipped  lost",
        "0       t              0      9      5           4        0     ?",
        "0       t              1  20856  18856       2,000        0     ?",
    ]


@pytest.mark.parametrize("command", ["fork", "rewind"])
def test_nothing_is_changed_without_yes(tmp_path: Path, command: str) -> None:
    place = write_checkpoint(tmp_path / "query", ENDS)
    before = content(tmp_path)
    target = [str(tmp_path / "forked")] if command == "fork" else []
    done = invoke("checkpoint", command, str(place), *target, "--batch", "0")
    assert done.exit_code == 0
    assert "Pass --yes" in done.output
    assert "At most 4 records are read again" in done.output
    assert content(tmp_path) == before


def test_json_has_the_plan_and_nothing_else_on_standard_output(tmp_path: Path) -> None:
    place = write_checkpoint(tmp_path / "query", ENDS)
    done = invoke("checkpoint", "rewind", str(place), "--offsets", '{"t":{"0":2}}', "--json")
    told = json.loads(done.stdout)
    assert (told["former_query_id"], told["query_id"], told["next_batch"]) == (QUERY_ID, QUERY_ID, 3)
    assert told["partitions"] == [
        {"source": "0", "topic": "t", "partition": 0, "from": 9, "to": 2, "read_again": 7, "skipped": 0, "lost": None}
    ]
    assert (told["backup"], told["applied"], told["state"]) == (None, False, "none")


def test_partition_that_was_found_after_the_batch_has_a_line_and_counts(tmp_path: Path) -> None:
    place = write_checkpoint(tmp_path / "query", [{"t": {"0": 5}}, {"t": {"0": 5, "1": 700}}])
    told = json.loads(invoke("checkpoint", "rewind", str(place), "--batch", "0", "--json").stdout)
    found = told["partitions"][1]
    assert (told["read_again"], found["partition"], found["from"], found["to"]) == (700, 1, 700, 0)


def test_rewind_that_seems_to_be_in_use_names_all_that_it_needs(tmp_path: Path) -> None:
    place = str(write_checkpoint(tmp_path / "query", ENDS))
    shown = invoke("checkpoint", "rewind", place, "--batch", "0").output
    assert "Pass --yes, and --force if it is stopped already, to do it;" in " ".join(shown.split())
    shown = invoke("checkpoint", "rewind", place, "--batch", "0", "--force").output
    assert "Pass --yes to do it;" in " ".join(shown.split())


def test_rewind_is_undone_by_its_backup(tmp_path: Path) -> None:
    place = write_checkpoint(tmp_path / "query", ENDS)
    before = content(place)
    done = invoke("checkpoint", "rewind", str(place), "--batch", "0", "--yes", "--force", "--json")
    backup = json.loads(done.stdout)["backup"]
    assert read_checkpoint(str(place)).history.last_finished == 2
    assert invoke("checkpoint", "rewind", str(place), "--restore", backup, "--force").exit_code == 0
    assert content(place) != before
    # As a rewind that was killed leaves it: no query runs there, so nobody needs to be asked.
    (place / "metadata").write_bytes(unfinished_note("x", backup))
    refused = invoke("checkpoint", "rewind", str(place), "--batch", "0", "--yes")
    assert refused.exit_code == 2
    assert "[CHECKPOINT_REWIND_UNFINISHED]" in refused.stderr
    assert f"--restore {backup}" in refused.stderr
    assert invoke("checkpoint", "rewind", str(place), "--restore", backup, "--yes").exit_code == 0
    assert content(place) == before


def written_long_ago(location: Path) -> None:
    for path in location.rglob("*"):
        if path.is_file():
            os.utime(path, (1, 1))


def test_backup_of_another_query_is_restored_by_force_only_and_that_is_undone(tmp_path: Path) -> None:
    place, other = write_checkpoint(tmp_path / "query", ENDS), write_checkpoint(tmp_path / "other", ENDS[:1])
    (other / "metadata").write_text('{"id":"11111111-2222-3333-4444-555555555555"}')
    written_long_ago(place)
    before = content(place)
    refused = invoke("checkpoint", "rewind", str(place), "--restore", str(other), "--yes")
    assert refused.exit_code == 2
    assert "is not known to be a backup of checkpoint" in refused.stderr
    assert content(place) == before
    done = invoke("checkpoint", "rewind", str(place), "--restore", str(other), "--yes", "--force", "--json")
    assert content(place) == content(other)
    former = json.loads(done.stdout)["former"]
    assert invoke("checkpoint", "rewind", str(place), "--restore", former, "--yes", "--force").exit_code == 0
    assert content(place) == before


@pytest.mark.parametrize("damaged", ["offsets/2", "metadata"])
def test_restore_over_a_damaged_checkpoint_is_undone(tmp_path: Path, damaged: str) -> None:
    place = write_checkpoint(tmp_path / "query", ENDS)
    done = invoke("checkpoint", "rewind", str(place), "--batch", "0", "--yes", "--force", "--json")
    backup = json.loads(done.stdout)["backup"]
    (place / damaged).write_bytes(b"")
    before = content(place)
    done = invoke("checkpoint", "rewind", str(place), "--restore", backup, "--yes", "--force", "--json")
    former = json.loads(done.stdout)["former"]
    written_long_ago(place)
    done = invoke("checkpoint", "rewind", str(place), "--restore", former, "--yes")
    assert done.exit_code == 0
    assert f"The content of the backup is damaged or incomplete, and is put back as it is: {damaged}" in done.stdout
    assert content(place) == before


def test_restore_over_a_checkpoint_without_a_batch_is_undone(tmp_path: Path) -> None:
    place, other = write_checkpoint(tmp_path / "query", []), write_checkpoint(tmp_path / "other", ENDS)
    before = content(place)
    done = invoke("checkpoint", "rewind", str(place), "--restore", str(other), "--yes", "--force", "--json")
    former = json.loads(done.stdout)["former"]
    assert invoke("checkpoint", "rewind", str(place), "--restore", former, "--yes", "--force").exit_code == 0
    assert content(place) == before


def test_restore_over_what_a_killed_rewind_has_left_is_undone(tmp_path: Path) -> None:
    place, other = write_checkpoint(tmp_path / "query", ENDS), write_checkpoint(tmp_path / "other", ENDS[:1])
    (place / "metadata").write_bytes(unfinished_note("x", "query-backup-1"))
    before = content(place)
    done = invoke("checkpoint", "rewind", str(place), "--restore", str(other), "--yes", "--force", "--json")
    former = json.loads(done.stdout)["former"]
    assert invoke("checkpoint", "rewind", str(place), "--restore", former, "--yes", "--force").exit_code == 0
    assert content(place) == before


@pytest.mark.parametrize("damaged", ["offsets/1", "metadata"])
def test_damaged_copy_that_no_rewind_has_made_is_refused(tmp_path: Path, damaged: str) -> None:
    place, other = write_checkpoint(tmp_path / "query", ENDS), write_checkpoint(tmp_path / "other", ENDS)
    (other / damaged).write_bytes(b"")
    before = content(place)
    done = invoke("checkpoint", "rewind", str(place), "--restore", str(other), "--yes", "--force")
    assert done.exit_code == 2
    assert "[CHECKPOINT_LOG_INVALID]" in done.stderr
    assert content(place) == before


def test_rewind_that_removes_files_is_refused_while_a_batch_is_not_finished(tmp_path: Path) -> None:
    place = write_checkpoint(tmp_path / "query", ENDS, finished=1)
    (place / "state" / "0" / "0").mkdir(parents=True)
    (place / "state" / "0" / "0" / "1.delta").write_text("x")
    written_long_ago(place)
    before = content(place)
    for arguments in (["--batch", "0"], ["--offsets", '{"t":{"0":2}}', "--drop-state"]):
        refused = invoke("checkpoint", "rewind", str(place), *arguments, "--yes")
        assert refused.exit_code == 2
        assert "Batch 1 of checkpoint" in refused.stderr
        shown = invoke("checkpoint", "rewind", str(place), *arguments)
        assert shown.exit_code == 0
        assert "Batch 1 of checkpoint" in shown.stderr
    assert content(place) == before
    assert invoke("checkpoint", "rewind", str(place), "--batch", "0", "--yes", "--force").exit_code == 0


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("apply", [(), ("--yes",)])
def test_interrupted_plan_of_a_fork_leaves_the_target_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apply: tuple[str, ...]
) -> None:
    place, other = write_checkpoint(tmp_path / "query", ENDS), write_checkpoint(tmp_path / "other", ENDS)
    monkeypatch.setattr(fork, "read_snapshot", interrupted)
    for target in (str(place), str(other), "s3://AKIA:PLANTED@bucket/x"):
        done = invoke("checkpoint", "fork", str(place), target, "--batch", "0", *apply)
        assert (done.exit_code, done.stderr) == (130, "Interrupted. Nothing was written.\n")


@pytest.mark.parametrize(
    ("method", "left"),
    [
        ("create", "Nothing was written."),
        ("replace", "The checkpoint is as it was. The fork in {} is not finished: remove that directory."),
    ],
)
def test_interrupted_fork_says_what_is_in_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, left: str
) -> None:
    place, target = write_checkpoint(tmp_path / "query", ENDS), tmp_path / "forked"
    monkeypatch.setattr(CheckpointFiles, method, interrupted)
    done = invoke("checkpoint", "fork", str(place), str(target), "--batch", "0", "--yes")
    assert done.exit_code == 130
    assert warnings_of(done) == f"Interrupted. {left.format(target)}\n"


def test_fork_that_is_interrupted_after_its_last_file_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, target = write_checkpoint(tmp_path / "query", ENDS), tmp_path / "forked"

    def late(*given: Any) -> None:
        apply_fork(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(fork, "apply_fork", late)
    done = invoke("checkpoint", "fork", str(place), str(target), "--batch", "0", "--yes")
    assert warnings_of(done) == f"Interrupted. The fork is finished: {target}.\n"
    monkeypatch.setattr(CheckpointFiles, "read", interrupted)
    assert "is not known" in fork._left_at(CheckpointFiles(str(target)), Any)  # type: ignore[arg-type]


def test_offsets_may_be_in_a_file(tmp_path: Path) -> None:
    place = write_checkpoint(tmp_path / "query", ENDS)
    (tmp_path / "offsets.json").write_text('\n{"t":{"0":2}}\n')
    given = ["--offsets", str(tmp_path / "offsets.json"), "--yes"]
    assert invoke("checkpoint", "fork", str(place), str(tmp_path / "forked"), *given).exit_code == 0
    assert read_checkpoint(str(tmp_path / "forked")).position()["0"].json() == '{"t":{"0":2}}'


def test_target_that_is_not_empty_is_refused_before_it_is_written(tmp_path: Path) -> None:
    place = write_checkpoint(tmp_path / "query", ENDS)
    for apply in ([], ["--yes"]):
        done = invoke("checkpoint", "fork", str(place), str(tmp_path), "--batch", "0", *apply)
        assert done.exit_code == 2
        assert "[CHECKPOINT_TARGET_INVALID]" in done.stderr


def test_checkpoint_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    place = write_checkpoint(tmp_path / "query", ENDS)
    (place / "offsets" / "1").write_text('v9\n{}\n{"t":{"0":9}}')
    done = invoke("checkpoint", "fork", str(place), str(tmp_path / "forked"), "--batch", "0", "--yes")
    assert done.exit_code == 2
    assert "[CHECKPOINT_VERSION]" in done.stderr
    assert not (tmp_path / "forked").exists()
