"""Which tasks of a sink wait an outage out."""

from __future__ import annotations

import pytest

from pyspark_kafka._client.client.waiting import stalls
from pyspark_kafka._client.options import WriteOptions, parse_write_options
from pyspark_kafka._connector.sink.executor.task_options import options_of_task

SERVERS = {"kafka.bootstrap.servers": "never-asked:9092"}


@pytest.fixture(autouse=True)
def _nothing_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalls, "_CONTACTS", {})


def _times(options: WriteOptions) -> tuple[int, int]:
    return options.outage_timeout_ms, options.producer.delivery_timeout_ms


def test_the_first_micro_batch_in_a_process_that_heard_nothing_is_first_contact() -> None:
    stream = parse_write_options(SERVERS, streaming=True)
    assert _times(options_of_task(stream, 0)) == (0, 120_000)
    assert _times(options_of_task(stream, 1)) == (600_000, 600_000)
    stalls.contact_of(stream.connection.bootstrap_servers).answered("a:1")
    assert _times(options_of_task(stream, 0)) == (600_000, 600_000)


def test_a_delivery_timeout_that_is_given_holds() -> None:
    stream = parse_write_options({**SERVERS, "kafka.delivery.timeout.ms": "40000"}, streaming=True)
    assert _times(options_of_task(stream, 7)) == (600_000, 40_000)


def test_a_batch_write_waits_for_nothing() -> None:
    batch = parse_write_options(SERVERS, streaming=False)
    assert options_of_task(batch, 0) is batch
    assert options_of_task(batch, 7) is batch
