from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.checkpoint_files import QUERY_ID, offsets_text, write_checkpoint
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import Earliest, KafkaSourceOffset, Latest, SpecificOffsets
from pyspark_kafka._connector.sink.source_positions import LaneRecord
from pyspark_kafka._ops.operations.checkpoints.batches import MOVED
from pyspark_kafka._ops.operations.checkpoints.forking.explain import describe_plan
from pyspark_kafka._ops.operations.checkpoints.forking.log_bounds import LogBounds
from pyspark_kafka._ops.operations.checkpoints.forking.places import AfterBatch, AtOffsets, AtTime, Place
from pyspark_kafka._ops.operations.checkpoints.forking.plan import ForkPlan, ForkRequest, StateHandling, plan_fork
from pyspark_kafka._ops.operations.checkpoints.forking.raw_log import FINISHED, LogText
from pyspark_kafka._ops.operations.checkpoints.forking.snapshot import CheckpointSnapshot, FinishedBatch, read_snapshot
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import CheckpointKind, read_checkpoint
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.checkpoint.continuous_files import OWNER, VERSIONS, owner_bytes, read_owner
from pyspark_kafka.checkpoint.initial_offset_log import decode
from pyspark_kafka.checkpoint.state_files import encoded_changes
from pyspark_kafka.checkpoint.topic_ids import TopicIdentities
from pyspark_kafka.errors import CheckpointError, OptionError

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
NEW_ID, NOW = "11111111-2222-3333-4444-555555555555", 1_767_300_000_000
BOUNDS = LogBounds({P0: 2, P1: 0}, {P0: 50, P1: 60}, {P0: 7}, {"t": "id-of-now"})
ENDS: list[Any] = [{"t": {"0": 5, "1": 1}}, {"t": {"0": 9, "1": 3}}, {"t": {"0": 20, "1": 4}}]


def plan(
    location: Path,
    place: Place,
    *,
    in_place: bool = False,
    drop_state: bool = False,
    bounds: LogBounds | None = BOUNDS,
) -> ForkPlan:
    snapshot = read_snapshot(read_checkpoint(str(location)), place.batch_id if isinstance(place, AfterBatch) else None)
    return plan_fork(snapshot, ForkRequest(place, in_place, drop_state, NEW_ID, NOW), bounds)


def at_offsets(**partitions: Any) -> AtOffsets:
    return AtOffsets(SpecificOffsets({TopicPartition("t", int(name[1:])): value for name, value in partitions.items()}))


def end_of(data: bytes) -> dict[TopicPartition, int]:
    return dict(KafkaSourceOffset.from_json(LogText.parse(data).lines[0]).partitions)


def with_state(location: Path, versions: int) -> Path:
    for number in range(1, versions + 1):
        path = location / "state" / "0" / "0" / f"{number}.delta"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return location


def test_fork_ends_its_last_batch_at_the_place_after_every_number_that_was_used(tmp_path: Path) -> None:
    made = plan(write_checkpoint(tmp_path, ENDS, finished=2), AfterBatch(0))
    assert list(made.creates) == ["offsets/2", "commits/2", "offsets/3", "commits/3"]
    assert end_of(made.creates["offsets/3"]) == {P0: 5, P1: 1}
    assert made.creates["offsets/2"] == made.creates["offsets/3"]
    assert made.next_batch == 4
    assert json.loads(made.metadata) == {"id": NEW_ID}
    metadata = LogText.parse(made.creates["offsets/3"])
    assert (metadata.value("batchTimestampMs"), metadata.value("batchWatermarkMs")) == (NOW, 0)
    assert metadata.value("conf") == {"spark.sql.shuffle.partitions": "2", MOVED: "true"}
    assert decode(made.writes["sources/0/0"]).partitions == {P0: 5, P1: 1}


def test_rewind_only_adds_a_batch_and_keeps_the_id(tmp_path: Path) -> None:
    made = plan(write_checkpoint(tmp_path, ENDS), AfterBatch(0), in_place=True)
    assert list(made.creates) == ["offsets/3", "commits/3"]
    assert (made.writes, made.removals, made.copies) == ({}, (), ())
    assert made.query_id == QUERY_ID
    assert not made.has_new_id


def test_rewind_writes_no_file_that_is_there_if_the_last_commit_has_no_offsets(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    (tmp_path / "offsets" / "2").unlink()
    made = plan(tmp_path, AfterBatch(0), in_place=True)
    assert list(made.creates) == ["offsets/3", "commits/3", "offsets/4", "commits/4"]
    assert made.next_batch == 5


def test_watermark_of_the_former_query_drops_no_record_of_the_new_one(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    (tmp_path / "offsets" / "2").write_text(offsets_text(2, [ENDS[2]], watermark_ms=NOW))
    (tmp_path / "commits" / "2").write_text(f'v1\n{{"nextBatchWatermarkMs":{NOW}}}')
    made = plan(tmp_path, at_offsets(p0=3))
    assert LogText.parse(made.creates["offsets/3"]).value("batchWatermarkMs") == 0
    assert LogText.parse(made.creates["commits/3"]).value("nextBatchWatermarkMs") == 0


def test_time_is_looked_up_and_without_a_later_record_it_is_the_end(tmp_path: Path) -> None:
    made = plan(write_checkpoint(tmp_path, ENDS), AtTime(1, "then"))
    assert [(each.now, each.to) for each in made.positions.moves] == [(20, 7), (4, 60)]
    assert [(each.read_again, each.skipped, each.lost) for each in made.positions.moves] == [(13, 0, 0), (0, 56, 0)]
    assert "At most 56 records are SKIPPED: the query never reads them (t-1 56)." in describe_plan(made)


def test_time_before_the_log_is_its_start_with_a_warning(tmp_path: Path) -> None:
    bounds = LogBounds({P0: 2, P1: 0}, {P0: 50, P1: 60}, {P0: 2, P1: 0}, {})
    made = plan(write_checkpoint(tmp_path, ENDS), AtTime(1, "then"), bounds=bounds)
    assert [each.to for each in made.positions.moves] == [2, 0]
    (note,) = made.positions.notes
    assert note.startswith("The log begins there: t-0 at 2. Records before that are deleted: those between the time")


def test_time_that_has_not_come_is_the_end(tmp_path: Path) -> None:
    made = plan(
        write_checkpoint(tmp_path, ENDS),
        AtTime(1, "then", is_future=True),
        bounds=LogBounds({P0: 2, P1: 0}, {P0: 50, P1: 60}),
    )
    assert [each.to for each in made.positions.moves] == [50, 60]
    assert "has not come yet" in made.positions.notes[0]


def test_partition_that_is_gone_stays_where_it_is(tmp_path: Path) -> None:
    bounds = LogBounds({P0: 0}, {P0: 50}, {P0: 7}, {}, frozenset({P1}))
    made = plan(write_checkpoint(tmp_path, ENDS), AtTime(1, "then"), bounds=bounds)
    assert [each.to for each in made.positions.moves] == [7, 4]
    assert "These partitions do not exist any more: t-1." in made.positions.notes[0]


def test_offsets_of_some_partitions_leave_the_others(tmp_path: Path) -> None:
    made = plan(write_checkpoint(tmp_path, ENDS), at_offsets(p0=Earliest()))
    assert [each.to for each in made.positions.moves] == [2, 4]
    made = plan(tmp_path, AtOffsets(SpecificOffsets(topics={"t": Latest()})))
    assert [each.to for each in made.positions.moves] == [50, 60]


@pytest.mark.parametrize("offset", [1, 51])
def test_offsets_outside_of_the_log_are_refused(tmp_path: Path, offset: int) -> None:
    with pytest.raises(OptionError, match=rf"offsets that the logs do not have: t-0 has 2 to 50, not {offset}\."):
        plan(write_checkpoint(tmp_path, ENDS), at_offsets(p0=offset))


def test_offsets_of_partitions_that_were_not_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"has not read: t-7\. It has read t-0, t-1\."):
        plan(write_checkpoint(tmp_path, ENDS), at_offsets(p7=1))


def test_numbers_need_no_broker_and_words_do(tmp_path: Path) -> None:
    made = plan(write_checkpoint(tmp_path, ENDS), at_offsets(p0=3), bounds=None)
    assert made.positions.moves[0].to == 3
    assert "The brokers were not asked whether they still have these records." in describe_plan(made)
    with pytest.raises(OptionError, match=r"\[OPTION_MISSING\] The place is looked up at the brokers"):
        plan(tmp_path, at_offsets(p0=Latest()), bounds=None)


def test_batch_of_which_the_log_has_lost_records_says_how_many(tmp_path: Path) -> None:
    bounds = LogBounds({P0: 8, P1: 0}, {P0: 50, P1: 60})
    made = plan(write_checkpoint(tmp_path, ENDS), AfterBatch(0), bounds=bounds)
    assert made.positions.moves[0].lost == 3
    assert made.positions.moves[0].read_again == 12
    assert any("At most 3 records from there on are LOST" in each for each in describe_plan(made))


@pytest.mark.parametrize(("batch_id", "hint"), [(2, r"Batches 0 to 1 are there\."), (7, r"Batches 0 to 1 are there\.")])
def test_batch_that_is_not_finished_or_not_kept_is_refused(tmp_path: Path, batch_id: int, hint: str) -> None:
    with pytest.raises(CheckpointError, match=hint):
        plan(write_checkpoint(tmp_path, ENDS, finished=2), AfterBatch(batch_id))


def test_query_without_a_batch_has_no_place(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"No batch of the query of checkpoint .* has begun"):
        plan(write_checkpoint(tmp_path, []), AfterBatch(0))


def test_sources_of_others_are_kept_by_a_batch_and_refused_otherwise(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [""])
    for number in (0, 1):
        ends: list[Any] = [{"t": {"0": 5 + number}}, f'{{"logOffset":{number}}}']
        (tmp_path / "offsets" / str(number)).write_text(offsets_text(number, ends))
        (tmp_path / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    (tmp_path / "sources" / "1").mkdir()
    (tmp_path / "sources" / "1" / "0").write_text("v1\n{}")
    made = plan(tmp_path, AfterBatch(0))
    assert made.positions.others == ("1",)
    assert LogText.parse(made.creates["offsets/2"]).lines == ('{"t":{"0":5}}', '{"logOffset":0}')
    assert made.copies == ("sources/1/0",)
    with pytest.raises(CheckpointError, match=r"also reads sources that are not Kafka's: 1\."):
        plan(tmp_path, at_offsets(p0=3))
    with_state(tmp_path, 2)
    with pytest.raises(CheckpointError, match="State cannot be dropped"):
        plan(tmp_path, AfterBatch(0), drop_state=True)


def test_state_is_carried_with_the_number_of_its_batch(tmp_path: Path) -> None:
    made = plan(with_state(write_checkpoint(tmp_path, ENDS), 3), AfterBatch(1))
    assert made.state is StateHandling.CARRIED
    assert made.next_batch == 2
    assert set(made.copies) == {
        "offsets/0", "offsets/1", "commits/0", "commits/1", "state/0/0/1.delta", "state/0/0/2.delta",
    }  # fmt: skip
    assert made.creates == {}
    assert made.query_id == NEW_ID
    assert any("Batches 2 to 2 have been before under these numbers" in each for each in describe_plan(made))


def test_rewind_with_state_removes_what_came_later_and_gets_a_new_id(tmp_path: Path) -> None:
    with_state(write_checkpoint(tmp_path, ENDS), 3)
    (tmp_path / "commits-of-sink").mkdir()
    for number in range(3):
        (tmp_path / "commits-of-sink" / str(number)).write_text("{}")
    made = plan(tmp_path, AfterBatch(1), in_place=True)
    assert set(made.removals) == {"offsets/2", "commits/2", "commits-of-sink/2", "state/0/0/3.delta"}
    assert made.has_new_id


def test_state_of_another_place_is_refused_and_can_be_dropped(tmp_path: Path) -> None:
    with_state(write_checkpoint(tmp_path, ENDS), 3)
    with pytest.raises(CheckpointError, match=r"\[CHECKPOINT_STATE_NOT_CARRIED\].*--drop-state"):
        plan(tmp_path, at_offsets(p0=3))
    made = plan(tmp_path, at_offsets(p0=3), drop_state=True)
    assert made.state is StateHandling.DROPPED
    assert list(made.creates) == ["offsets/0"]
    line = LogText.parse(made.creates["offsets/0"]).lines[0]
    # Batch 0 begins where it ends, for a source with and for one without the file of its beginning.
    assert line == '{"t":{"00":3,"0":3,"01":4,"1":4}}'
    assert decode(made.writes["sources/0/0"]).partitions == {P0: 3, P1: 4}
    assert made.next_batch == 0


def test_rewind_that_drops_the_state_removes_all_batches(tmp_path: Path) -> None:
    made = plan(with_state(write_checkpoint(tmp_path, ENDS[:1]), 1), at_offsets(p0=3), in_place=True, drop_state=True)
    assert set(made.removals) == {"offsets/0", "commits/0", "state/0/0/1.delta"}
    assert "sources/0/0" in made.writes


def test_state_that_spark_has_removed_is_refused_with_the_batches_that_have_it(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    state = tmp_path / "state" / "0" / "0"
    state.mkdir(parents=True)
    for name in ("2.snapshot", "3.delta"):
        (state / name).write_bytes(b"x")
    with pytest.raises(CheckpointError, match=r"after batch 0 is not whole in state/0/0; it is after batch 2, 1"):
        plan(tmp_path, AfterBatch(0))


def test_state_whose_versions_have_ids_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    state = tmp_path / "state" / "0" / "0"
    state.mkdir(parents=True)
    (state / "1_6f4b2c1e-aa.zip").write_bytes(b"x")
    with pytest.raises(
        CheckpointError, match=r"checkpointFormatVersion is 2\), which are not carried.*Pass --drop-state"
    ):
        plan(tmp_path, AfterBatch(0))


def test_ids_of_topics_are_those_of_the_place(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    kept = TopicIdentities({"t": "former"}, "x", ("t",))
    (tmp_path / "sources" / "0" / "topic-ids").write_bytes(kept.to_bytes())
    name = "sources/0/topic-ids"
    by_batch = plan(tmp_path, AfterBatch(0)).writes[name]
    assert TopicIdentities.from_bytes(by_batch, "") == TopicIdentities({"t": "former"})
    by_time = plan(tmp_path, AtTime(1, "then"), in_place=True).writes[name]
    assert TopicIdentities.from_bytes(by_time, "") == TopicIdentities({"t": "id-of-now"})


def two_topics(location: Path, kept: TopicIdentities, *, finished: int | None = None) -> Path:
    ends = [{"a": {"0": 900, "1": 40}, "b": {"0": 3}}, {"a": {"0": 1000, "1": 50}, "b": {"0": 9}}]
    write_checkpoint(location, ends, finished=finished)
    (location / "sources" / "0" / "topic-ids").write_bytes(kept.to_bytes())
    return location


def ids_of(made: ForkPlan) -> TopicIdentities:
    return TopicIdentities.from_bytes(made.writes["sources/0/topic-ids"], "")


A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
TWO = LogBounds({A0: 0, A1: 0, B0: 0}, {A0: 5000, A1: 70, B0: 10}, {A0: 1, A1: 1, B0: 1}, {"a": "now", "b": "now-b"})


@pytest.mark.parametrize("offsets", [{B0: 5}, {B0: 5, A0: 0}])
def test_recreated_topic_with_a_partition_that_stays_keeps_the_id_of_the_former_one(
    tmp_path: Path, offsets: dict[TopicPartition, int]
) -> None:
    two_topics(tmp_path, TopicIdentities({"a": "former", "b": "former-b"}))
    made = plan(tmp_path, AtOffsets(SpecificOffsets(offsets)), bounds=TWO)
    assert ids_of(made) == TopicIdentities({"a": "former", "b": "now-b"})
    assert any("recreated since the query has read them: a. Not each of" in each for each in describe_plan(made))
    whole = plan(tmp_path, AtOffsets(SpecificOffsets(offsets, topics={"a": Earliest()})), bounds=TWO)
    assert ids_of(whole) == TopicIdentities({"a": "now", "b": "now-b"})
    assert not any("Not each of" in each for each in describe_plan(whole))


def test_place_in_a_recreated_topic_reads_nothing_of_the_former_one_again(tmp_path: Path) -> None:
    two_topics(tmp_path, TopicIdentities({"a": "former", "b": "now-b"}))
    named = AtOffsets(SpecificOffsets({A1: 30}, topics={"a": Earliest(), "b": Earliest()}))
    for place, skipped in ((named, [0, 30, 0]), (AtTime(1, "then"), [1, 1, 0])):
        moves = plan(tmp_path, place, bounds=TWO).positions.moves
        assert [each.is_recreated for each in moves] == [True, True, False]
        assert [bool(each.read_again) for each in moves] == [False, False, True]
        assert [each.skipped for each in moves] == skipped
    told = describe_plan(plan(tmp_path, AtOffsets(SpecificOffsets(topics={"a": Earliest()})), bounds=TWO))
    assert any(
        "recreated since the query has read them: a. Its positions there are of the former" in each for each in told
    )
    assert not any("nothing is skipped" in each for each in told)


def test_recreated_topic_with_fewer_partitions_keeps_the_id_of_the_former_one(tmp_path: Path) -> None:
    two_topics(tmp_path, TopicIdentities({"a": "former", "b": "former-b"}))
    bounds = LogBounds({A0: 0, B0: 0}, {A0: 5000, B0: 10}, {A0: 1, B0: 1}, TWO.topic_ids, frozenset({A1}))
    for place in (AtTime(1, "then"), AtOffsets(SpecificOffsets({A0: 0, A1: 50, B0: 5}))):
        assert ids_of(plan(tmp_path, place, bounds=bounds)) == TopicIdentities({"a": "former", "b": "now-b"})


@pytest.mark.parametrize("noted", ['{"a":{"0":1000,"1":50},"b":{"0":9}}', 'from {"a":{"0":900,"1":40},"b":{"0":3}}'])
@pytest.mark.parametrize("bounds", [TWO, None])
def test_restart_of_the_unfinished_batch_is_not_forgotten_beside_positions_of_the_former_topic(
    tmp_path: Path, noted: str, bounds: LogBounds | None
) -> None:
    two_topics(tmp_path, TopicIdentities({"a": "now", "b": "now-b"}, noted, ("a",)), finished=1)
    for in_place in (False, True):
        with pytest.raises(CheckpointError, match=r"\[CHECKPOINT_PLACE_INVALID\] Topics of .* were recreated: a\."):
            plan(tmp_path, AtOffsets(SpecificOffsets({B0: 5, A0: 0})), in_place=in_place, bounds=bounds)
    made = plan(tmp_path, AtOffsets(SpecificOffsets({A0: 0, A1: 0})), bounds=bounds)
    assert ids_of(made) == TopicIdentities({"a": "now", "b": "now-b"})


def test_restart_at_the_beginning_of_the_query_is_not_forgotten(tmp_path: Path) -> None:
    initial = {"a": {"0": 1000}, "b": {"0": 3}}
    write_checkpoint(tmp_path, [{"a": {"0": 20}, "b": {"0": 9}}], finished=0, initial=initial)
    noted = TopicIdentities({"a": "now"}, 'from {"a":{"0":1000},"b":{"0":3}}', ("a",))
    (tmp_path / "sources" / "0" / "topic-ids").write_bytes(noted.to_bytes())
    with pytest.raises(CheckpointError, match="were recreated: a"):
        plan(tmp_path, AtOffsets(SpecificOffsets({B0: 5})), bounds=None)


def test_restart_that_is_finished_hinders_nothing(tmp_path: Path) -> None:
    two_topics(tmp_path, TopicIdentities({"a": "now"}, '{"a":{"0":1000,"1":50},"b":{"0":9}}', ("a",)))
    made = plan(tmp_path, AtOffsets(SpecificOffsets({B0: 5})), bounds=TWO)
    assert ids_of(made) == TopicIdentities({"a": "now"})


def test_end_of_a_log_with_an_open_transaction_is_where_the_transaction_begins(tmp_path: Path) -> None:
    bounds = LogBounds({P0: 2, P1: 0}, {P0: 50, P1: 60}, {P0: 45}, {}, stable={P0: 30, P1: 40})
    made = plan(write_checkpoint(tmp_path, ENDS), AtTime(1, "then"), bounds=bounds)
    assert [each.to for each in made.positions.moves] == [30, 40]
    made = plan(tmp_path, at_offsets(p0=Latest()), bounds=bounds)
    assert [each.to for each in made.positions.moves] == [30, 4]
    assert made.positions.notes == ()
    made = plan(tmp_path, at_offsets(p0=31, p1=40), bounds=bounds)
    assert [each.to for each in made.positions.moves] == [31, 40]
    assert any("Transactions are open before the offsets of t-0: a" in each for each in describe_plan(made))


@pytest.mark.parametrize("noted", ['{"t":{"0":9,"1":3}}', 'from {"t":{"0":5,"1":1}}'])
def test_batch_before_a_recreated_topic_is_refused(tmp_path: Path, noted: str) -> None:
    write_checkpoint(tmp_path, ENDS)
    (tmp_path / "sources" / "0" / "topic-ids").write_bytes(TopicIdentities({"t": "i"}, noted, ("t",)).to_bytes())
    with pytest.raises(CheckpointError, match="After batch 0 these topics were recreated: t"):
        plan(tmp_path, AfterBatch(0))
    assert plan(tmp_path, AfterBatch(1)).next_batch == 4


def continuous(location: Path, *, record: bool = False, ends: list[Any] = ENDS) -> Path:
    write_checkpoint(location, ends)
    for number, end in enumerate(ends):
        (location / "offsets" / str(number)).write_text(offsets_text(number, [end], conf={}))
    CheckpointFiles(str(location)).replace(OWNER, owner_bytes("run-1"))
    if record:
        record_text = {"v": 1, "owner": "o", "group": "g", "prefix": "p", "lanes": 1, "topics": {}}
        (location / "continuous" / "transactions").write_text(json.dumps(record_text))
    return location


def test_continuous_query_that_still_runs_loses_its_checkpoint(tmp_path: Path) -> None:
    made = plan(continuous(tmp_path), AfterBatch(0), in_place=True)
    assert read_owner(made.writes[OWNER]) == NEW_ID
    assert made.query_id == QUERY_ID


def test_exactly_once_continuous_query_gets_a_group_of_its_own(tmp_path: Path) -> None:
    made = plan(continuous(tmp_path, record=True), AfterBatch(0), in_place=True)
    assert made.has_new_id
    assert made.removals == ("continuous/transactions",)
    assert any("consumer group 'g'" in each for each in describe_plan(made))
    assert not any("continuous/transactions" in name for name in plan(tmp_path, AfterBatch(0)).copies)


def test_continuous_state_is_carried_under_the_next_number(tmp_path: Path) -> None:
    continuous(tmp_path)
    files = CheckpointFiles(str(tmp_path))
    heads = {"0/t-0": "1-ab.1"}
    for number in range(3):
        files.replace(f"{VERSIONS}/{number}", json.dumps({"v": 1, "schemas": ["n int64"], "heads": heads}).encode())
    for name, before in (("0-ab", ""), ("1-ab", "0-ab.1"), ("2-ab", "1-ab.1")):
        data = encoded_changes([(b"k", b"v")], {"previous": before})
        files.replace(f"continuous/state/0/t-0/{name}.0.delta", data)
    made = plan(tmp_path, AfterBatch(1))
    assert made.state is StateHandling.CARRIED
    assert json.loads(made.creates[f"{VERSIONS}/3"])["heads"] == heads
    assert [name for name in made.copies if "state" in name] == [
        "continuous/state/0/t-0/0-ab.0.delta", "continuous/state/0/t-0/1-ab.0.delta",
    ]  # fmt: skip
    with pytest.raises(CheckpointError, match=r"after epoch 0 of .* are not whole: files of 0/t-0"):
        plan(tmp_path, AfterBatch(0))
    with pytest.raises(CheckpointError, match="CHECKPOINT_STATE_NOT_CARRIED"):
        plan(tmp_path, at_offsets(p0=3))
    dropped = plan(tmp_path, at_offsets(p0=3), drop_state=True)
    assert json.loads(dropped.creates[f"{VERSIONS}/3"]) == {"v": 1, "schemas": ["n int64"], "heads": {}}


@pytest.mark.parametrize("data", [None, b"", b"PKS1" + bytes(40)], ids=["missing", "empty", "damaged"])
def test_state_that_a_restart_cannot_read_is_not_carried(tmp_path: Path, data: bytes | None) -> None:
    continuous(tmp_path)
    files = CheckpointFiles(str(tmp_path))
    text = json.dumps({"v": 1, "schemas": ["n int64"], "heads": {"0/t-0": "1-ab.1"}})
    for number in range(3):
        files.replace(f"{VERSIONS}/{number}", text.encode())
    files.replace("continuous/state/0/t-0/1-ab.0.delta", encoded_changes([(b"k", b"v")], {"previous": "0-ab.1"}))
    if data is not None:
        files.replace("continuous/state/0/t-0/0-ab.0.delta", data)
    with pytest.raises(CheckpointError, match="not whole: files of 0/t-0 are missing or damaged") as caught:
        plan(tmp_path, AfterBatch(1))
    assert caught.value.condition == "CHECKPOINT_STATE_NOT_CARRIED"


def test_query_of_which_no_batch_is_finished_says_so(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS[:1], finished=0, initial={"t": {"0": 1, "1": 1}})
    made = plan(tmp_path, at_offsets(p0=3))
    assert [(each.now, each.to) for each in made.positions.moves] == [(1, 3), (1, 1)]
    assert made.next_batch == 2
    assert "No batch of the query is known to be finished" in describe_plan(made)[-1]


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("place", [AtTime(1, "then"), at_offsets(p0=3), at_offsets(p0=3, p1=3)])
def test_unfinished_first_batch_of_which_nobody_keeps_the_start_is_no_place(
    tmp_path: Path, place: Place, in_place: bool
) -> None:
    write_checkpoint(tmp_path, ENDS[:1], finished=0)
    with pytest.raises(CheckpointError, match=r"\[CHECKPOINT_PLACE_INVALID\] .* begins in source 0: records") as caught:
        plan(tmp_path, place, in_place=in_place)
    assert "startingTimestamp" in caught.value.hint


def test_source_of_which_nobody_keeps_the_start_is_refused_beside_one_whose_start_is_kept(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS[:1], finished=0, initial={"t": {"0": 1, "1": 1}})
    (tmp_path / "offsets" / "0").write_text(offsets_text(0, [ENDS[0], {"u": {"0": 7}}]))
    with pytest.raises(CheckpointError, match="begins in source 1: records"):
        plan(tmp_path, at_offsets(p0=3))


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("drop_state", [False, True])
def test_query_that_begins_before_its_topics_exist_stays_at_no_offsets(
    tmp_path: Path, in_place: bool, drop_state: bool
) -> None:
    write_checkpoint(tmp_path, ENDS[:1], finished=0, initial={})
    if drop_state:
        with_state(tmp_path, 1)
    made = plan(tmp_path, AtTime(1, "then"), in_place=in_place, drop_state=drop_state)
    assert end_of(made.creates[f"offsets/{0 if drop_state else 1}"]) == {}


@pytest.mark.parametrize(
    ("bounds", "again", "lost"),
    [
        (LogBounds({P0: 0, P1: 0}, {P0: 100, P1: 6000}), 5000, 0),
        (LogBounds({P0: 0, P1: 1000}, {P0: 100, P1: 6000}), 4000, 1000),
        (None, 5000, 0),
    ],
)
def test_partition_that_was_found_after_the_batch_is_read_again_from_its_beginning(
    tmp_path: Path, bounds: LogBounds | None, again: int, lost: int
) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 100}}, {"t": {"0": 100, "1": 5000}}])
    made = plan(tmp_path, AfterBatch(0), bounds=bounds)
    (known, found) = made.positions.moves
    assert (known.read_again, known.is_new) == (0, False)
    assert (found.topic_partition, found.now, found.to, found.is_new) == (P1, 5000, 0, True)
    assert (found.read_again, found.skipped, found.lost) == (again, 0, lost)
    assert end_of(made.creates["offsets/2"]) == {P0: 100}
    said = describe_plan(made)
    assert any("had not found these partitions yet, and reads them from their beginning: t-1." in each for each in said)
    assert any(f"At most {again:,} records are read again" in each for each in said)
    # As a query of micro-batches does that finds a partition whose first records are deleted.
    assert any("LOST" in each and "KAFKA_DATA_LOSS" in each for each in said) is bool(lost)
    assert ("The brokers were not asked whether they still have these records." in said) is (bounds is None)


def test_continuous_query_begins_a_partition_that_it_finds_at_its_first_record(tmp_path: Path) -> None:
    ends: list[Any] = [{"t": {"0": 100}}, {"t": {"0": 100, "1": 5000}}]
    made = plan(
        continuous(tmp_path, ends=ends), AfterBatch(0), bounds=LogBounds({P0: 0, P1: 1000}, {P0: 100, P1: 6000})
    )
    found = made.positions.moves[1]
    assert (found.to, found.read_again, found.lost) == (1000, 4000, 0)


def test_partitions_of_a_batch_that_are_gone_are_told(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 100}}, {"t": {"0": 100, "1": 5000}}])
    made = plan(tmp_path, AfterBatch(0), bounds=LogBounds(gone=frozenset({P0, P1})))
    assert [each.topic_partition for each in made.positions.moves] == [P0]
    said = describe_plan(made)
    assert any("These partitions do not exist any more: t-0." in each for each in said)
    assert not any("were not asked" in each for each in said)


def _snapshot(now: dict[TopicPartition, int], finished: tuple[int, ...], last: int, record: bool) -> CheckpointSnapshot:
    offset = KafkaSourceOffset(now)
    batch = FinishedBatch(finished[-1], {}, LogText("v1", '{"conf":{}}', (offset.json(),)), FINISHED)
    lanes = LaneRecord("o", "g", "p") if record else None
    return CheckpointSnapshot(
        "/c", QUERY_ID, CheckpointKind.MICRO_BATCH, finished, last, batch, {"0": offset}, None,
        {"0": TopicIdentities()}, {}, tuple(f"offsets/{each}" for each in range(last + 1)), lanes,
    )  # fmt: skip


_PARTITIONS = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 3)), st.integers(0, 100), min_size=1
)


@given(data=st.data(), now=_PARTITIONS, last=st.integers(0, 9), in_place=st.booleans(), record=st.booleans())
def test_plan_starts_every_partition_once_within_its_log_and_uses_no_number_again(
    data: st.DataObject, now: dict[TopicPartition, int], last: int, in_place: bool, record: bool
) -> None:
    bounds = {each: sorted(data.draw(st.tuples(st.integers(0, 100), st.integers(0, 100)))) for each in now}
    gone = frozenset(data.draw(st.sets(st.sampled_from(sorted(now)))))
    found = {each: data.draw(st.integers(*ends)) for each, ends in bounds.items() if data.draw(st.booleans())}
    there = {each: ends for each, ends in bounds.items() if each not in gone}
    logs = LogBounds(
        {each: ends[0] for each, ends in there.items()}, {each: ends[1] for each, ends in there.items()},
        {each: offset for each, offset in found.items() if each in there}, {}, gone,
    )  # fmt: skip
    snapshot = _snapshot(now, tuple(range(data.draw(st.integers(0, last)) + 1)), last, record)
    made = plan_fork(snapshot, ForkRequest(AtTime(1, "then"), in_place, False, NEW_ID, NOW), logs)
    ends = end_of(made.creates[f"offsets/{made.next_batch - 1}"])
    assert ends.keys() == now.keys()
    for each, to in ends.items():
        if each in gone:
            assert to == now[each]
        else:
            assert bounds[each][0] <= to <= bounds[each][1]
    for move in made.positions.moves:
        assert move.lost == 0
        assert not (move.read_again and move.skipped)
    assert made.next_batch == last + 2
    assert not in_place or not set(made.creates) & set(snapshot.files)
    assert made.has_new_id is (not in_place or record)
    assert describe_plan(made)
