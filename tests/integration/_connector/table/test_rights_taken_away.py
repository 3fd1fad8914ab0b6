"""Rights that are taken away while a query runs: it ends with an error that names them, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from kit.independent_client import Record, await_committed, consume_committed, produce
from kit.reading import drain
from kit.rights import SOURCE, TARGET
from kit.rights_in_use import Guarded, Trial
from pyspark_kafka._client.client.wire.missing_rights import Right
from pyspark_kafka._connector.table.kafka_table import KafkaTable
from pyspark_kafka.connector import MicroBatchStream, Offset, PhysicalWriteInfo
from pyspark_kafka.errors import AccessError


def stream_of(trial: Trial, **options: str) -> MicroBatchStream:
    scan = KafkaTable().newScanBuilder(trial.read_options(failOnDataLoss="false", **options)).build()
    return scan.toMicroBatchStream(str(trial.place / "source"))


def read(stream: MicroBatchStream, start: Offset) -> tuple[Offset, list[bytes]]:
    """Run one micro-batch; return its end and its values."""
    end = stream.latestOffset(start, stream.getDefaultReadLimit())  # type: ignore[attr-defined]
    factory = stream.createReaderFactory()
    parts = stream.planInputPartitions(start, end)
    batches = [batch for part in parts for batch in drain(factory.createReader(part))]
    return end, [value for batch in batches for value in batch.column("value").to_pylist()]


@pytest.mark.parametrize("by", ["subscribe", "subscribePattern", "assign"])
def test_stream_reads_on_where_it_was_once_the_right_is_back(guarded: Guarded, tmp_path: Path, by: str) -> None:
    trial, rights = guarded.trial("read", tmp_path)
    name = trial.names[SOURCE]
    chosen = {by: f'{{"{name}":[0]}}' if by == "assign" else name}
    guarded.acls.put(rights)
    stream = stream_of(trial, **chosen)
    end, values = read(stream, stream.initialOffset())
    assert values == [b"v"]
    produce(guarded.kafka.bootstrap_servers, name, [Record(None, b"w")])
    guarded.acls.put([])
    # Of the query that runs, and of one that was started again: with failOnDataLoss=false a topic that is gone would
    # be left out with a warning.
    again = stream_of(trial, **chosen)
    for each in (stream, again):
        with pytest.raises(AccessError, match=rf"DESCRIBE on topic '{name}' \(READ includes it\).*User:alice"):
            read(each, end)
    guarded.acls.put(rights)
    for each in (stream, again):
        assert read(each, end)[1] == [b"w"]


def test_pattern_that_matches_nothing_for_this_user_is_logged_once(
    guarded: Guarded, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trial, rights = guarded.trial("read", tmp_path)
    guarded.acls.put([])
    stream = stream_of(trial, subscribePattern=trial.names[SOURCE])
    start = stream.initialOffset()
    for _ in range(3):
        stream.latestOffset(start, stream.getDefaultReadLimit())  # type: ignore[attr-defined]
    assert caplog.text.count("matches no topic that this user may describe") == 1
    guarded.acls.put(rights)
    assert read(stream, start)[1] == [b"v"]


def test_task_that_reads_names_the_right_and_where_it_was(guarded: Guarded, tmp_path: Path) -> None:
    trial, rights = guarded.trial("read", tmp_path)
    records = [Record(None, b"%05d" % number + b"x" * 1000) for number in range(3000)]
    produce(guarded.kafka.bootstrap_servers, trial.names[SOURCE], records)
    guarded.acls.put(rights)
    options = trial.read_options(**{"kafka.fetch.max.bytes": "20000", "kafka.max.partition.fetch.bytes": "20000"})
    batch = KafkaTable().newScanBuilder(options).build().toBatch()
    (part,) = batch.planInputPartitions()
    reader = batch.createReaderFactory().createReader(part)
    rows = 0
    try:
        assert reader.next()
        rows += reader.get().num_rows
        guarded.acls.put([])
        with pytest.raises(AccessError, match="TOPIC_AUTHORIZATION_FAILED") as caught:  # noqa: PT012 - a loop
            while reader.next():
                rows += reader.get().num_rows
    finally:
        reader.close()
    assert 0 < rows < 3001
    text = str(caught.value)
    assert f"READ on topic '{trial.names[SOURCE]}'" in text
    assert f"Records of the range before {rows} were handed out, none from there on" in text


def test_task_that_writes_names_the_right_and_counts_its_records(guarded: Guarded, tmp_path: Path) -> None:
    trial, rights = guarded.trial("write", tmp_path)
    name, seen = trial.names[TARGET], Right("Describe", "topic", trial.names[TARGET])
    guarded.acls.put([*rights, seen])
    # Without a producer id, for which the brokers would look at the right first.
    write = trial.write_of(**{"kafka.enable.idempotence": "false"}).toBatch()
    factory = write.createBatchWriterFactory(PhysicalWriteInfo(2))
    first, second = (factory.createWriter(number, 0) for number in range(2))
    try:
        first.write(pa.RecordBatch.from_pydict({"value": [b"a"]}))
        first.commit()
        guarded.acls.put([seen])
        second.write(pa.RecordBatch.from_pydict({"value": [b"b"]}))
        with pytest.raises(AccessError, match=rf"WRITE on topic '{name}'\. Records of {name}-0: .*not delivered 1"):
            second.commit()
        second.abort()
    finally:
        first.close()
        second.close()
    assert [record.value for record in consume_committed(guarded.kafka.bootstrap_servers, name)] == [b"a"]


@pytest.mark.parametrize("taken", range(4))
def test_exactly_once_batch_is_written_once_after_the_right_is_back(
    guarded: Guarded, tmp_path: Path, taken: int
) -> None:
    trial, rights = guarded.trial("exactly-once", tmp_path)
    guarded.acls.put(rights)
    trial.write_micro_batch_once(epoch=0)
    missing: Right = rights[taken]
    guarded.acls.put(right for right in rights if right != missing)
    with pytest.raises(AccessError, match=rf"'{missing.name}'.*--operation {missing.operation}"):
        trial.write_micro_batch_once(epoch=1)
    await_committed(guarded.kafka.bootstrap_servers, trial.names[TARGET], [b"a", b"b"])
    guarded.acls.put(rights)
    for _ in range(2):
        trial.write_micro_batch_once(epoch=1)
    await_committed(guarded.kafka.bootstrap_servers, trial.names[TARGET], [b"a", b"b", b"a", b"b"])
