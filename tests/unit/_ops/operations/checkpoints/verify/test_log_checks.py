from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit.checkpoint_files import offsets_text, write_checkpoint
from pyspark_kafka._ops.operations.checkpoints.batches import MOVED
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka._ops.operations.checkpoints.verify.file_judge import FileJudge
from pyspark_kafka._ops.operations.checkpoints.verify.findings import Findings
from pyspark_kafka._ops.operations.checkpoints.verify.log_checks import LogChecks
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.errors import CheckpointError

ENDS = [{"t": {"0": 5 * number, "1": number}} for number in range(1, 6)]


def found_in(location: Path, max_batches: int | None = None) -> Findings:
    findings = Findings()
    LogChecks(FileJudge(read_checkpoint(str(location)), findings, str)).run(max_batches)
    return findings


def codes(location: Path) -> list[tuple[str, str, str]]:
    return [(each.severity.value, each.code, each.where) for each in found_in(location)]


def moved(location: Path, number: int, end: dict[str, dict[str, int]]) -> None:
    """Write a batch as a rewind does."""
    text = offsets_text(number, [json.dumps(end, separators=(",", ":"))], conf={MOVED: "true"})
    (location / "offsets" / str(number)).write_text(text)
    (location / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def test_batches_of_a_rewind_are_a_note_and_no_fault(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS, finished=4)
    moved(tmp_path, 5, {"t": {"0": 5, "1": 0}})
    (tmp_path / "offsets" / "6").write_text(offsets_text(6, [{"t": {"0": 9, "1": 0}}]))
    (tmp_path / "commits" / "6").write_text('v1\n{"nextBatchWatermarkMs":0}')
    passed_over, moved_by = found_in(tmp_path)
    assert [(each.severity.value, each.code) for each in (passed_over, moved_by)] == [
        ("note", "passed-over"),
        ("note", "moved"),
    ]
    assert passed_over.text == (
        "Batches begun and not finished when a rewind moved the query: 4. No restart runs them again."
    )
    assert moved_by.text.startswith("Batches written by a fork or a rewind: 5. ")


def remove(location: Path, *names: str) -> None:
    for name in names:
        (location / name).unlink()


@pytest.mark.parametrize("finished", [4, 5])
@pytest.mark.parametrize("version", [1, 2])
def test_logs_of_a_query_have_nothing_wrong(tmp_path: Path, finished: int, version: int) -> None:
    assert codes(write_checkpoint(tmp_path, ENDS, finished=finished, version=version, first=7)) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "The file is empty: it was cut short."),
        (b"v1\n", "it ends after its version"),
        (b'v1\n{"batchWatermarkMs":0,"ba', "its metadata are not JSON"),
        (b'v1\n{}\n{"t":{"0":', "it is not JSON"),
        (b"\xff\xfe", "it is not text in UTF-8"),
        (b"v1\n" + b"[" * 200_000, "is malformed"),
    ],
)
def test_last_file_that_is_cut_short_is_a_fault(tmp_path: Path, content: bytes, said: str) -> None:
    write_checkpoint(tmp_path, ENDS, finished=4)
    (tmp_path / "offsets" / "4").write_bytes(content)
    (finding,) = found_in(tmp_path)
    assert (finding.severity.value, finding.code, finding.where) == ("fault", "damaged", "offsets/4")
    assert said in finding.text
    assert "remove the file and its .crc: the batch is planned again" in finding.advice


def test_old_file_that_is_cut_short_is_a_warning(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    (tmp_path / "offsets" / "1").write_bytes(b"")
    (tmp_path / "commits" / "2").write_bytes(b"v1\n{")
    assert codes(tmp_path) == [("warning", "damaged", "offsets/1"), ("warning", "damaged", "commits/2")]


def test_last_commit_that_is_cut_short_is_run_again_once_it_is_removed(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    (tmp_path / "commits" / "4").write_bytes(b"")
    (finding,) = found_in(tmp_path)
    assert (finding.severity.value, finding.where) == ("fault", "commits/4")
    assert finding.advice.startswith("Remove the file and its .crc: the batch is run again")


def test_file_of_a_newer_version_is_named(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    (tmp_path / "offsets" / "4").write_text('v3\n{}\n{"t":{"0":5}}')
    assert codes(tmp_path) == [("fault", "newer-version", "offsets/4")]


def test_finished_batch_without_offsets_is_a_fault(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    remove(tmp_path, "offsets/4")
    assert codes(tmp_path) == [("fault", "finished-without-offsets", "commits")]


def test_purge_that_was_broken_off_is_a_note(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    remove(tmp_path, "offsets/0", "offsets/1")
    assert codes(tmp_path) == [("note", "purge-not-finished", "commits")]


def test_batch_in_between_that_is_not_finished_is_a_warning(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    remove(tmp_path, "commits/2")
    assert codes(tmp_path) == [("warning", "not-finished-between", "offsets")]


def test_several_unfinished_batches_are_a_fault(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS, finished=3)
    (finding,) = found_in(tmp_path)
    assert (finding.severity.value, finding.code) == ("fault", "several-unfinished")
    assert finding.text == (
        "Batches begun and not finished: 3, 4. A restart runs only 4 again: what the others read may be missing in the "
        "sink."
    )


def test_missing_batch_before_the_last_one_is_a_fault(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS, finished=4)
    remove(tmp_path, "offsets/3", "commits/3")
    assert codes(tmp_path) == [("fault", "no-second-last", "offsets/3"), ("warning", "gap", "offsets")]


def test_gap_in_the_offsets_alone_is_a_warning(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    remove(tmp_path, "offsets/2")
    assert codes(tmp_path) == [
        ("fault", "finished-without-offsets", "commits"),
        ("warning", "gap", "offsets"),
    ]


def test_gaps_in_both_logs_are_those_of_asynchronous_progress(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    remove(tmp_path, "offsets/1", "commits/1", "offsets/3", "commits/3")
    (finding,) = found_in(tmp_path)
    assert (finding.severity.value, finding.code) == ("note", "gap")
    assert finding.text.startswith("Batches are missing between 0 and 4: 1, 3. Both logs skip them")


def test_positions_that_go_back_are_a_warning(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 50, "1": 9}}, {"t": {"0": 20, "1": 9}}])
    (finding,) = found_in(tmp_path)
    assert (finding.severity.value, finding.code, finding.where) == ("warning", "backwards", "offsets/1")
    assert "(t-0: from 50 to 20)" in finding.text


def test_partition_that_is_not_named_any_more_is_a_warning(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}, "u": {"0": 1}}, {"t": {"0": 6}}])
    (finding,) = found_in(tmp_path)
    assert (finding.code, finding.where) == ("partitions-gone", "offsets/1")
    assert "does not name u-0 any more" in finding.text


def test_another_number_of_sources_is_a_warning(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    (tmp_path / "offsets" / "4").write_text(offsets_text(4, [ENDS[4], "7"]))
    assert codes(tmp_path) == [("warning", "other-sources", "offsets/4")]


def test_named_sources_come_and_go(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    for number, names in enumerate([("orders",), ("orders", "returns"), ("returns",)], 2):
        lines = offsets_text(number, [], version=2).splitlines() + [f'{name}:{{"{name}":{{"0":7}}}}' for name in names]
        (tmp_path / "offsets" / str(number)).write_text("\n".join(lines))
    # From numbers to names, it is another query.
    assert [code for code in codes(tmp_path) if code[1] == "other-sources"] == [
        ("warning", "other-sources", "offsets/2")
    ]


def test_time_that_goes_back_is_a_note(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    (tmp_path / "offsets" / "4").write_text(offsets_text(0, [ENDS[4]]))
    assert codes(tmp_path) == [("note", "time-backwards", "offsets/4")]


def test_both_connectors_in_one_checkpoint_are_a_note(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    (tmp_path / "offsets" / "4").write_text(offsets_text(4, ['{"t":{"0":25,"1":5}}']))
    assert codes(tmp_path) == [("note", "both-connectors", "offsets")]


def test_only_the_last_batches_are_read_if_that_is_asked_for(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    (tmp_path / "offsets" / "0").write_bytes(b"")
    assert list(found_in(tmp_path, 2)) == []


def test_batches_that_are_removed_meanwhile_are_a_note(tmp_path: Path) -> None:
    checkpoint = read_checkpoint(str(write_checkpoint(tmp_path, ENDS)))
    remove(tmp_path, "offsets/0", "commits/0")
    findings = Findings()
    LogChecks(FileJudge(checkpoint, findings, str)).run(None)
    assert [(each.severity.value, each.code) for each in findings] == [("note", "in-use")]


def test_right_that_is_missing_is_not_known_and_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = read_checkpoint(str(write_checkpoint(tmp_path, ENDS)))

    def refused(_: CheckpointFiles, name: str) -> bytes:
        raise CheckpointError(f"Cannot read {name}: forbidden.", condition="CHECKPOINT_IO")

    monkeypatch.setattr(CheckpointFiles, "read", refused)
    findings = Findings()
    LogChecks(FileJudge(checkpoint, findings, str)).run(None)
    assert list(findings) == []
    assert "Cannot read offsets/4: forbidden." in findings.unknown


def test_no_file_is_written(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS, finished=4)
    before = sorted((str(path), path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    found_in(tmp_path)
    assert sorted((str(path), path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before
