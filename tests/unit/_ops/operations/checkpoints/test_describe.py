from __future__ import annotations

from pathlib import Path

from kit.checkpoint_files import QUERY_ID, offsets_text, write_checkpoint
from pyspark_kafka._connector.sink.driver.lane_record_file import LaneRecordFile
from pyspark_kafka._connector.sink.source_positions import LaneRecord
from pyspark_kafka._ops.operations.checkpoints.describe import (
    describe_batch,
    describe_query,
    describe_restart,
    describe_standing,
)
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka._ops.operations.checkpoints.summary import BatchSummary, read_summary
from pyspark_kafka._ops.operations.checkpoints.unfinished import unfinished_note
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.checkpoint.continuous_files import MESSAGES, OWNER, PreparedEpoch, owner_bytes

ENDS = [{"t": {"0": 5, "1": 3}}, {"t": {"0": 9, "1": 3}}]


def restart_of(location: Path) -> str:
    return " ".join(describe_restart(read_summary(read_checkpoint(str(location)))))


def test_query_is_described_with_what_it_reads_and_keeps(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    (tmp_path / "state" / "0" / "0").mkdir(parents=True)
    assert describe_query(read_summary(read_checkpoint(str(tmp_path)))) == [
        f"The query of checkpoint {tmp_path} is {QUERY_ID}.",
        "It runs in micro-batches.",
        "Source 0 is Kafka's, read by pyspark-kafka: t with 2 partitions.",
        "It keeps state: an operator in state/0, 1 partition.",
    ]


def test_sources_of_other_programs_are_said_to_be_so(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ["{" + '"logOffset":' + "1" * 100 + "}"])
    said = describe_query(read_summary(read_checkpoint(str(tmp_path))))
    assert said[-1].startswith('Source 0 is not Kafka\'s; its offset is {"logOffset":111')
    assert said[-1].endswith("1….")


def test_standing_says_which_batches_are_kept(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS, finished=1, first=7)
    assert describe_standing(read_summary(read_checkpoint(str(tmp_path)))) == [
        "The checkpoint keeps 2 batches, 7 to 8; older ones are removed by the query as it runs.",
        "The last one was planned at 2026-01-01T00:01:20.000Z.",
        "Batch 7 is the last one that is finished.",
    ]


def test_restart_runs_an_unfinished_batch_again(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS, finished=1)
    assert restart_of(tmp_path) == (
        "Batch 1 has begun and is not finished. A restart runs it again, from the same start to the same ends: at most "
        "4 records. A sink that is neither idempotent nor exactly once may then have rows of it twice; `verify` asks "
        "the brokers what an exactly-once sink has."
    )


def test_restart_after_a_finished_batch_plans_the_next_one(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    assert restart_of(tmp_path) == "A restart plans batch 2, which begins where batch 1 ends."


def test_restart_of_a_query_without_batches_begins_at_its_options(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [])
    assert restart_of(tmp_path) == "A restart is the first run: it begins at the query's startingOffsets."


def test_restart_is_refused_where_a_rewind_was_not_finished(tmp_path: Path) -> None:
    place = write_checkpoint(tmp_path / "query", ENDS)
    (place / "metadata").write_bytes(unfinished_note("x", "query.before-1"))
    assert restart_of(place) == (
        "No query starts here: a fork or a rewind of the checkpoint was not finished. Run `pyspark-kafka checkpoint "
        f"rewind {place} --restore {place}.before-1`."
    )


def continuous(location: Path) -> CheckpointFiles:
    write_checkpoint(location, ENDS, finished=1)
    files = CheckpointFiles(str(location))
    files.replace("offsets/1", offsets_text(1, [ENDS[1]], conf={}).encode())
    files.replace(OWNER, owner_bytes("start-1"))
    return files


def test_restart_of_a_continuous_query_commits_its_prepared_epoch(tmp_path: Path) -> None:
    files = continuous(tmp_path)
    assert restart_of(tmp_path).startswith("Epoch 1 has begun and is not finished, and its commit messages are gone.")
    files.replace(f"{MESSAGES}/1", PreparedEpoch("{}", ()).to_bytes())
    assert restart_of(tmp_path) == (
        "Epoch 1 was to be committed and is not noted as finished. A restart commits it again with the commit messages "
        "that the checkpoint keeps. A sink that has it already does nothing."
    )


def test_transactions_of_a_continuous_query_are_named(tmp_path: Path) -> None:
    files = continuous(tmp_path)
    LaneRecordFile(files).write(LaneRecord("start-1", "group-1", "prefix", 3))
    assert describe_query(read_summary(read_checkpoint(files)))[-1] == (
        "It writes exactly once, with transactional ids prefix-0 to -2, consumer group group-1."
    )


def test_batch_is_one_line() -> None:
    batch = BatchSummary(7, True, 1_767_225_600_000, 1_767_225_601_500, 1_767_225_590_000, {"a": 1_000, "b": 7}, 2)
    assert describe_batch(batch) == (
        "Batch 7: planned 2026-01-01T00:00:00.000Z, finished after 1.5 s, at most 1,007 records (1,000 of a, 7 of b) "
        "and 2 new partitions, watermark 2025-12-31T23:59:50.000Z."
    )
    assert describe_batch(BatchSummary(8, False)) == "Batch 8: not finished, its start is not kept."
    assert describe_batch(BatchSummary(9, True, offsets_by_topic={"a": 0})) == "Batch 9: finished, no records."
    assert describe_batch(BatchSummary(9, True, problem="It is\x1b[31m red.")) == (
        r"Batch 9: cannot be read. It is\x1b[31m red."
    )
