"""A whole check of a real broker: what is found, and that nothing on the cluster is changed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kit.brokers.two_brokers import free_ports
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.reading import client_of
from pyspark_kafka import check
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.transactions.inspection import TransactionState, describe_transaction
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.options import ProducerOptions
from pyspark_kafka._ops.diagnosis import Diagnosis, Finding, FindingStatus
from pyspark_kafka.records import encode
from pyspark_kafka.testing import EmbeddedKafka

STEPS = ["packages", "options", "names", "tcp", "tls", "sasl", "brokers", "advertised", "clock", "topics"]


def only(diagnosis: Diagnosis, step: str, *statuses: FindingStatus) -> Finding:
    (found,) = diagnosis.of(step, *statuses)
    return found


def options(servers: str, **more: str) -> dict[str, Any]:
    return {"kafka.bootstrap.servers": servers, **more}


def test_check_of_a_reader_and_a_writer_finds_everything_in_order(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(partitions=3)
    produce(bootstrap_servers, topic, [Record(b"key", b"value", partition=1)])
    seen: list[str] = []
    found = check(
        options(bootstrap_servers, subscribe=topic, topic=topic, startingOffsets="earliest"),
        watch=lambda title, finding: seen.append(title) if finding is None else None,
    )
    assert found.ok, found
    assert list(dict.fromkeys(each.step for each in found.findings)) == [*STEPS, "rights", "record"]
    assert len(seen) == 11
    assert only(found, "topics").facts["offsets"] == {"0": [0, 0], "1": [0, 1], "2": [0, 0]}
    assert only(found, "brokers").facts["release"] == "4.3"
    assert only(found, "clock").status is FindingStatus.OK
    assert [each.text for each in found.of("rights")] == [
        f"Read: all rights are there ({topic}).",
        f"Write: all rights are there ({topic}).",
        "Not needed by these options: exactly once: yes; continuous, exactly once: yes.",
    ]


def test_record_is_described_by_its_sizes_and_shown_only_if_asked_for(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(b"alice", b"S3cret-tx", headers=[("h", b"1")])])
    found = check(options(bootstrap_servers, subscribe=topic))
    record = only(found, "record")
    assert {name: record.facts[name] for name in ("offset", "key_bytes", "value_bytes", "headers")} == {
        "offset": 0,
        "key_bytes": 5,
        "value_bytes": 9,
        "headers": 1,
    }
    assert "S3cret" not in str(found.to_json())
    assert "alice" not in str(found.to_json())
    shown = only(check(options(bootstrap_servers, subscribe=topic), show_record=True), "record")
    assert (shown.facts["key"], shown.facts["value"]) == ("'alice'", "'S3cret-tx'")


def test_missing_topic_is_named_with_the_nearest_one_and_the_option(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    found = check(options(bootstrap_servers, subscribe=f"{topic}x"))
    missing = only(found, "topics")
    assert missing.status is FindingStatus.FAILED
    assert missing.facts["option"] == "subscribe"
    assert missing.remedy.startswith(f"Did you mean '{topic}")


def test_pattern_that_matches_nothing_is_a_failure(bootstrap_servers: str) -> None:
    found = check(options(bootstrap_servers, subscribePattern="no-such-.*"))
    assert only(found, "topics").facts["option"] == "subscribePattern"


def test_wrong_port_is_named_and_later_steps_say_why_they_are_skipped() -> None:
    (free_port,) = free_ports(1)
    found = check(options(f"127.0.0.1:{free_port}", subscribe="t"))
    refused = only(found, "tcp")
    assert refused.status is FindingStatus.FAILED
    assert "Correct the port of" in refused.remedy
    assert refused.facts["option"] == "kafka.bootstrap.servers"
    assert {each.text for each in found.of("brokers") + found.of("record")} == {
        "Not judged: no bootstrap server accepts connections."
    }


def test_name_that_nobody_has_is_said_to_be_unknown() -> None:
    found = check(options("no-such-host.invalid:9092"))
    unknown = only(found, "names")
    assert unknown.status is FindingStatus.FAILED
    assert "Correct 'no-such-host.invalid' in kafka.bootstrap.servers" in unknown.remedy


def test_one_server_that_fails_is_a_warning_while_another_works(bootstrap_servers: str) -> None:
    (free_port,) = free_ports(1)
    found = check(options(f"127.0.0.1:{free_port},{bootstrap_servers}"))
    assert found.ok
    assert only(found, "tcp", FindingStatus.WARNING).facts["server"] == f"127.0.0.1:{free_port}"


def test_problems_of_options_are_all_told_and_nothing_is_connected(bootstrap_servers: str) -> None:
    found = check(options(bootstrap_servers, subscribe="t", startingOffset="earliest", minPartitions="x"))
    assert len(found.of("options", FindingStatus.FAILED)) == 2
    assert only(found, "names").status is FindingStatus.SKIPPED


def test_time_that_is_over_skips_what_is_left(bootstrap_servers: str) -> None:
    found = check(options(bootstrap_servers), timeout_s=0)
    assert only(found, "brokers").text == "Not judged: the time for the whole check is over (--timeout)."


@pytest.mark.broker
def test_check_leaves_an_open_transaction_open_and_makes_no_topic_and_no_group() -> None:
    """On a broker of its own: the internal topics are not there before, and must not be there afterwards."""
    with EmbeddedKafka() as kafka:
        servers = kafka.bootstrap_servers
        kafka.create_topic("orders")
        given = options(servers, subscribe="orders", topic="orders", deliveryGuarantee="exactly_once")
        given |= {"kafka.transactional.id": "sink"}
        assert check(given).ok
        with client_of(servers) as client:
            assert set(client.fetch_metadata(None).topics) == {"orders"}
            owner = TransactionalId(client, "sink", 60_000)
            transaction = owner.fence()
            where = TopicPartition("orders", 0)
            owner.join(transaction, [where])
            with Producer(client, ProducerOptions(), transaction=transaction) as producer:
                producer.send_batch(where, bytearray(encode(pa.RecordBatch.from_pydict({"value": [b"v"]}))), 1)
                producer.flush()
            before = describe_transaction(client, "sink")
            assert before is not None
            assert check(given).ok
            after = describe_transaction(client, "sink")
            assert after == before
            assert after is not None
            assert after.state is TransactionState.ONGOING
            owner.end(transaction, commit=True)
            assert "__consumer_offsets" not in client.fetch_metadata(None).topics
