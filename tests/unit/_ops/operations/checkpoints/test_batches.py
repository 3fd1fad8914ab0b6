from __future__ import annotations

from pathlib import Path

import pytest

from kit.checkpoint_files import PLANNED_MS, STEP_MS, offsets_text, write_checkpoint
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._ops.operations.checkpoints.batches import BatchHistory, is_batch_name, kafka_offset, rows_between
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.errors import CheckpointError

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def history_of(location: Path) -> BatchHistory:
    files = CheckpointFiles(str(location))
    return BatchHistory(files, files.scan("offsets"), files.scan("commits"))


@pytest.mark.parametrize("version", [1, 2])
def test_batch_has_its_ends_times_and_whether_it_is_finished(tmp_path: Path, version: int) -> None:
    history = history_of(write_checkpoint(tmp_path, [{"t": {"0": 5}}, {"t": {"0": 9}}], finished=1, version=version))
    first, second = history.get(0), history.get(1)
    assert first is not None
    assert second is not None
    assert (first.finished, second.finished) == (True, False)
    assert second.offsets["0"].partitions == {P0: 9}
    assert second.planned_at_ms == PLANNED_MS + STEP_MS
    assert second.watermark_ms is None
    assert second.conf == {"spark.sql.shuffle.partitions": "2"}


def test_numbers_are_sorted_as_numbers_and_other_files_are_left_out(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}] * 12)
    for name in ("notes.txt", "-1", "012", "9" * 20, "٣"):
        (tmp_path / "offsets" / name).write_text("")
    (tmp_path / "offsets" / "77").mkdir()
    assert history_of(tmp_path).begun == tuple(range(12))


def test_last_finished_batch_is_one_that_both_logs_have(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}, {"t": {"0": 6}}])
    (tmp_path / "offsets" / "1").unlink()
    history = history_of(tmp_path)
    assert (history.finished, history.last_finished, history.last_begun) == ((0, 1), 0, 0)


def test_batch_before_another_is_found_over_a_gap(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}] * 6)
    for number in (2, 3):
        (tmp_path / "offsets" / str(number)).unlink()
    history = history_of(tmp_path)
    assert [history.before(number) for number in (0, 1, 3, 4)] == [None, 0, 1, 1]


def test_batch_that_is_removed_meanwhile_is_none(tmp_path: Path) -> None:
    history = history_of(write_checkpoint(tmp_path, [{"t": {"0": 5}}]))
    (tmp_path / "offsets" / "0").unlink()
    assert history.get(0) is None
    assert history.written_ms(0, "offsets") is None


def test_time_of_a_batch_is_that_of_its_file(tmp_path: Path) -> None:
    history = history_of(write_checkpoint(tmp_path, [{"t": {"0": 5}}]))
    assert history.written_ms(0) == (tmp_path / "commits" / "0").stat().st_mtime_ns // 1_000_000


def test_sources_of_other_programs_have_no_offset(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [""])
    others = ['{"logOffset":3}', "17", '{"0":{"value":5,"runTimeMs":12}}', '{"sourceVersion":1,"index":-1}', "{}x"]
    (tmp_path / "offsets" / "0").write_text(offsets_text(0, [{"t": {"0": 5}}, *others[:-1], None]))
    batch = history_of(tmp_path).get(0)
    assert batch is not None
    assert list(batch.offsets) == ["0"]
    assert [end.is_other for end in batch.ends.values()] == [False, True, True, True, True, False]
    assert batch.ends["1"].text == others[0]


@pytest.mark.parametrize(
    "text", ['{"t":{"0":5', '{"t":{"0":-2}}', '{"t":{"0":"5"}}', '{"t":{"0":5,"1":18446744073709551616}}', "[" * 9000]
)
def test_damaged_offset_of_kafka_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    write_checkpoint(tmp_path, [text])
    with pytest.raises(CheckpointError, match=r"source 0 of offsets/0 of checkpoint .*: The source offset"):
        history_of(tmp_path).get(0)


def test_empty_offset_is_that_of_a_kafka_source_without_partitions() -> None:
    offset = kafka_offset("{}")
    assert offset is not None
    assert offset.partitions == {}


def test_rows_are_counted_where_both_ends_are_known() -> None:
    assert rows_between({P0: 3}, {P0: 5, P1: 9}) == {P0: 2}
    assert rows_between({P0: 3}, {P0: 1}) == {P0: -2}


@pytest.mark.parametrize(
    ("name", "expected"), [("0", True), ("10", True), ("00", False), ("", False), ("1.tmp", False)]
)
def test_name_of_a_batch_is_its_number(name: str, expected: bool) -> None:
    assert is_batch_name(name) is expected


@pytest.mark.parametrize("metadata", ['{"batchTimestampMs":"x","batchWatermarkMs":true,"conf":[]}', "", "{}"])
def test_metadata_of_another_form_are_no_times(tmp_path: Path, metadata: str) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}])
    (tmp_path / "offsets" / "0").write_text(f'v1\n{metadata}\n{{"t":{{"0":5}}}}')
    batch = history_of(tmp_path).get(0)
    assert batch is not None
    assert (batch.planned_at_ms, batch.watermark_ms, batch.conf) == (None, None, {})
