from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit.checkpoint_files import QUERY_ID, offsets_text, write_checkpoint
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.sink.driver.lane_record_file import LaneRecordFile
from pyspark_kafka._connector.sink.source_positions import LaneRecord
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import CheckpointKind, StateOperator, read_checkpoint
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.checkpoint.continuous_files import MESSAGES, OWNER, PreparedEpoch, owner_bytes
from pyspark_kafka.checkpoint.topic_ids import TopicIdentities
from pyspark_kafka.errors import CheckpointError

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_position_is_the_end_of_the_last_finished_batch(tmp_path: Path) -> None:
    read = read_checkpoint(str(write_checkpoint(tmp_path, [{"t": {"0": 5}}, {"t": {"0": 9}}], finished=1)))
    assert read.query_id() == QUERY_ID
    assert read.kind() is CheckpointKind.MICRO_BATCH
    assert read.position()["0"].partitions == {P0: 5}
    unfinished = read.unfinished()
    assert unfinished is not None
    assert unfinished.batch_id == 1
    assert read.start_of(1)["0"].partitions == {P0: 5}


def test_position_before_a_batch_is_finished_is_the_beginning(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}], finished=0, initial={"t": {"0": 2}})
    read = read_checkpoint(str(tmp_path))
    assert read.position()["0"].partitions == {P0: 2}
    assert read.start_of(0) == read.beginnings()


def test_beginning_is_taken_from_the_end_of_batch_0_if_no_file_has_it(tmp_path: Path) -> None:
    read = read_checkpoint(str(write_checkpoint(tmp_path, ['{"t":{"00":3,"0":5,"1":7}}'])))
    assert read.beginnings()["0"].partitions == {P0: 3}
    assert read.start_of(0)["0"].partitions == {P0: 3}


def test_start_of_the_first_batch_that_is_kept_is_not_known(tmp_path: Path) -> None:
    assert read_checkpoint(str(write_checkpoint(tmp_path, [{"t": {"0": 5}}], first=7))).start_of(7) == {}


def test_query_that_has_not_begun_is_empty(tmp_path: Path) -> None:
    read = read_checkpoint(str(write_checkpoint(tmp_path, [])))
    assert read.kind() is CheckpointKind.EMPTY
    assert (read.last_begun(), read.last_finished(), read.unfinished(), read.position()) == (None, None, None, {})


def test_place_without_a_checkpoint_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "query" / "offsets").mkdir(parents=True)
    with pytest.raises(CheckpointError, match="CHECKPOINT_NOT_FOUND"):
        read_checkpoint(str(tmp_path))
    with pytest.raises(CheckpointError, match="CHECKPOINT_NOT_FOUND"):
        read_checkpoint(str(tmp_path / "missing"))


def test_damaged_file_is_an_error_of_the_call_that_reads_it(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}, {"t": {"0": 9}}], finished=1)
    (tmp_path / "metadata").write_text("")
    (tmp_path / "offsets" / "1").write_text("v1\n{")
    read = read_checkpoint(str(tmp_path))
    assert read.position()["0"].partitions == {P0: 5}
    with pytest.raises(CheckpointError, match=r"offsets/1 .* is malformed"):
        read.last_begun()
    with pytest.raises(CheckpointError, match=r"metadata of checkpoint .* is malformed"):
        read.query_id()


def test_checkpoint_without_metadata_has_no_id(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}])
    (tmp_path / "metadata").unlink()
    assert read_checkpoint(str(tmp_path)).query_id() is None


def test_files_of_the_sources_are_read(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}])
    (tmp_path / "sources" / "0" / "topic-ids").write_bytes(TopicIdentities({"t": "id"}).to_bytes())
    (tmp_path / "sources" / "1").mkdir()
    # As the sources of files and rates write it.
    (tmp_path / "sources" / "1" / "0").write_text('v1\n{"path":"file:///a","timestamp":1,"batchId":0}')
    read = read_checkpoint(str(tmp_path))
    assert read.sources() == ("0", "1")
    assert read.topic_ids("0").ids == {"t": "id"}
    assert read.initial_offsets("0") is None
    assert read.initial_offsets("1") is None
    assert read.reader_schemas("0") == {}
    assert read.sink_schemas() == {}


def test_state_operators_of_both_engines_are_listed(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}])
    for directory in ("state/0/0", "state/0/1", "state/0/_metadata", "continuous/state/counts/3"):
        (tmp_path / directory).mkdir(parents=True)
    operator = {"operatorInfo": {"operatorId": 0, "operatorName": "stateStoreSave"}}
    (tmp_path / "state" / "0" / "_metadata" / "metadata").write_text("v1\n" + json.dumps(operator))
    assert read_checkpoint(str(tmp_path)).state_operators() == (
        StateOperator("state/0", "stateStoreSave", 2),
        StateOperator("continuous/state/counts", "counts", 1),
    )


@pytest.fixture
def continuous(tmp_path: Path) -> CheckpointFiles:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}])
    files = CheckpointFiles(str(tmp_path))
    files.replace("offsets/1", offsets_text(1, [{"t": {"0": 9}}], conf={}).encode())
    files.replace(OWNER, owner_bytes("start-1"))
    files.replace(f"{MESSAGES}/1", PreparedEpoch('{"t":{"0":9}}', ("a",)).to_bytes())
    return files


def test_continuous_query_is_known_by_its_owner_and_its_epochs(continuous: CheckpointFiles) -> None:
    read = read_checkpoint(continuous)
    assert read.kind() is CheckpointKind.CONTINUOUS
    assert read.owner() == "start-1"
    assert read.prepared_epochs() == (1,)
    assert read.lane_record() is None
    record = LaneRecord("start-1", "group", "prefix", 2, {P0: "id"})
    LaneRecordFile(continuous).write(record)
    assert read.lane_record() == record


def test_micro_batches_after_epochs_make_it_theirs(continuous: CheckpointFiles) -> None:
    continuous.replace("offsets/2", offsets_text(2, [{"t": {"0": 12}}]).encode())
    assert read_checkpoint(continuous).kind() is CheckpointKind.MICRO_BATCH


def test_epochs_of_spark_have_no_metadata(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}])
    (tmp_path / "offsets" / "0").write_text('v1\n\n{"t":{"0":5}}')
    assert read_checkpoint(str(tmp_path)).kind() is CheckpointKind.SPARK_CONTINUOUS


def test_reading_lists_and_reads_no_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}] * 50)
    read: list[str] = []
    monkeypatch.setattr(CheckpointFiles, "read", lambda _, name: read.append(name))
    assert len(read_checkpoint(str(tmp_path)).history.begun) == 50
    assert read == []
