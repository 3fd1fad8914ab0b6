"""A source continues through an outage of a real broker, and says what it waits for: on the driver and in tasks."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from kit.fixtures.broker import FREEZE, MortalBroker
from kit.fixtures.waits import report_no_other_waits, waiting_lines
from kit.independent_client import Record, produce
from kit.waiting import PATIENCE_S
from pyspark_kafka._client.options import parse_batch_read_options, parse_stream_read_options
from pyspark_kafka._connector.source.driver.batch import KafkaBatch
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition
from pyspark_kafka.connector import InputPartition, PartitionReader, ReadAllAvailable
from pyspark_kafka.errors import DeadlineError, TransportError

pytestmark = pytest.mark.usefixtures("early_reports")

# One attempt of a look-up; an outage is longer.
ATTEMPT_MS = 2_500


def options_of(broker: MortalBroker, topic: str, **more: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "kafka.default.api.timeout.ms": str(ATTEMPT_MS),
        **more,
    }


def stream_of(broker: MortalBroker, topic: str, **more: str) -> KafkaMicroBatchStream:
    return KafkaMicroBatchStream(parse_stream_read_options(options_of(broker, topic, **more)), SOURCE_SCHEMA)


def over(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("Waiting for Kafka is over after ")]


def in_thread(call: object) -> threading.Thread:
    thread = threading.Thread(target=call, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread


def read_all(reader: PartitionReader) -> None:
    while reader.next():
        pass


@pytest.mark.parametrize("how", ["kill", FREEZE])
def test_a_stream_that_has_run_looks_up_through_an_outage(
    mortal_broker: MortalBroker, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    topic = f"outage-latest-{how}"
    mortal_broker.kafka.create_topic(topic)
    produce(mortal_broker.bootstrap_servers, topic, [Record(None, b"v", 0)] * 3)
    stream = stream_of(mortal_broker, topic)
    start = stream.initialOffset()
    caplog.clear()
    if how == "kill":
        mortal_broker.kafka.kill()
    else:
        mortal_broker.kafka.pause()
    ends: list[object] = []
    looking = in_thread(lambda: ends.append(stream.latestOffset(start, ReadAllAvailable())))
    # Longer than an attempt.
    looking.join(ATTEMPT_MS / 1000 * 3)
    outlasts = looking.is_alive()
    report_no_other_waits()
    if how == "kill":
        mortal_broker.kafka.start()
    else:
        mortal_broker.kafka.resume()
    looking.join(PATIENCE_S)
    assert outlasts
    assert [str(end) for end in ends] == [str(stream.deserializeOffset(f'{{"{topic}":{{"0":3}}}}'))]
    lines = waiting_lines(caplog)
    assert f"of Subscribe[{topic}], for " in lines[0]
    assert f"; {mortal_broker.bootstrap_servers} answered last, at " in lines[0]
    assert over(lines)
    assert lines[-1] == over(lines)[-1]


@pytest.mark.full("Waits for limits of time")
def test_an_outage_that_lasts_too_long_ends_the_stream_with_what_was_true(mortal_broker: MortalBroker) -> None:
    mortal_broker.kafka.create_topic("outage-long")
    stream = stream_of(mortal_broker, "outage-long", outageTimeout="5s")
    start = stream.initialOffset()
    mortal_broker.kafka.kill()
    with pytest.raises(DeadlineError) as caught:
        stream.latestOffset(start, ReadAllAvailable())
    text = str(caught.value)
    assert text.startswith("[OUTAGE_TOO_LONG] An outage of the Kafka brokers lasts since ")
    assert f"reachable: {mortal_broker.bootstrap_servers} answered last, at " in text
    assert "such steps of this run succeeded before." in text
    assert "'kafka.bootstrap.servers'; " not in text
    assert "Nothing was read or written" not in text


def test_first_contact_and_batch_reads_fail_fast(mortal_broker: MortalBroker, caplog: pytest.LogCaptureFixture) -> None:
    mortal_broker.kafka.create_topic("outage-first")
    options = options_of(mortal_broker, "outage-first", endingOffsets="latest", minPartitions="2")
    batch = KafkaBatch(parse_batch_read_options(options), SOURCE_SCHEMA)
    batch.planInputPartitions()
    mortal_broker.kafka.kill()
    with pytest.raises(TransportError, match="BOOTSTRAP_FAILED"):
        stream_of(mortal_broker, "outage-first").initialOffset()
    with pytest.raises(TransportError, match="BOOTSTRAP_FAILED"):
        batch.planInputPartitions()
    # Each said what it waited for, and neither that it was over.
    assert not over(waiting_lines(caplog))


def _planned(broker: MortalBroker, topic: str, **more: str) -> tuple[KafkaMicroBatchStream, InputPartition]:
    broker.kafka.create_topic(topic)
    produce(broker.bootstrap_servers, topic, [Record(None, b"%d" % n, 0) for n in range(1_000)], batch_size=2_000)
    # Small fetches: most of the range is still to be read when the broker goes.
    more = {"kafka.fetch.max.bytes": "2000", "kafka.max.partition.fetch.bytes": "2000", **more}
    stream = stream_of(broker, topic, **more)
    start = stream.initialOffset()
    (planned,) = stream.planInputPartitions(start, stream.latestOffset(start, ReadAllAvailable()))
    return stream, planned


@pytest.mark.parametrize("how", ["kill", FREEZE])
def test_a_task_of_a_stream_reads_on_after_an_outage_longer_than_its_poll_timeout(
    mortal_broker: MortalBroker, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    short = {"kafkaConsumer.pollTimeoutMs": "2000", "kafka.request.timeout.ms": "1000"}
    stream, planned = _planned(mortal_broker, f"outage-task-{how}", **short)
    reader = stream.createReaderFactory().createReader(planned)
    assert reader.next()
    values = reader.get().column("value").to_pylist()
    caplog.clear()
    if how == "kill":
        mortal_broker.kafka.kill()
    else:
        mortal_broker.kafka.pause()

    def read() -> None:
        while reader.next():
            values.extend(reader.get().column("value").to_pylist())

    reading = in_thread(read)
    reading.join(6.0)
    outlasts = reading.is_alive()
    report_no_other_waits()
    if how == "kill":
        mortal_broker.kafka.start()
    else:
        mortal_broker.kafka.resume()
    reading.join(PATIENCE_S)
    assert outlasts
    reader.close()
    assert values == [b"%d" % n for n in range(1_000)]
    lines = waiting_lines(caplog)
    assert f"reading outage-task-{how}-0 [0, 1000) at offset " in lines[0]
    assert len(over(lines)) == 1


@pytest.mark.full("Waits for limits of time")
def test_a_task_whose_outage_lasts_too_long_says_what_was_true(mortal_broker: MortalBroker) -> None:
    short = {"kafkaConsumer.pollTimeoutMs": "2000", "kafka.request.timeout.ms": "1000", "outageTimeout": "4s"}
    stream, planned = _planned(mortal_broker, "outage-task-long", **short)
    reader = stream.createReaderFactory().createReader(planned)
    assert reader.next()
    mortal_broker.kafka.kill()
    with pytest.raises(DeadlineError) as caught:
        read_all(reader)
    reader.close()
    text = str(caught.value)
    assert text.startswith("[OUTAGE_TOO_LONG] ")
    assert "outage-task-long-0 [0, 1000) at offset " in text
    assert f"{mortal_broker.bootstrap_servers} answered last, at " in text


def test_an_end_that_is_not_visible_is_waited_for_as_long_as_before(mortal_broker: MortalBroker) -> None:
    stream, planned = _planned(mortal_broker, "outage-none", **{"kafkaConsumer.pollTimeoutMs": "1000"})
    (offset_range,) = planned.offset_ranges  # type: ignore[attr-defined]
    beyond = KafkaInputPartition(replace(offset_range, start_offset=999, end_offset=1_001))
    reader = stream.createReaderFactory().createReader(beyond)
    with pytest.raises(DeadlineError, match="FETCH_NO_PROGRESS"):
        read_all(reader)
    reader.close()
