"""The catalogue of options: it has all names of Spark's connector and of Java's clients."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pyspark_kafka._client.options import parse_batch_read_options, parse_stream_read_options, parse_write_options
from pyspark_kafka._client.options.catalogue import OPTIONS
from pyspark_kafka._client.options.catalogue.option import EVERYWHERE, READS, WRITES, Option, OptionTable, Scope, Status
from pyspark_kafka._client.options.catalogue.parity import OURS, REFUSED_THERE, SAME
from pyspark_kafka.errors import OptionError

# ConsumerConfig.configNames() and ProducerConfig.configNames() of org.apache.kafka:kafka-clients:4.3.0, without the
# one that begins with "internal.".
JAVA_PROPERTIES = (Path(__file__).parent / "java_client_properties.txt").read_text(encoding="ascii").split()

# Of spark-sql-kafka-0-10, from its documentation and source.
SPARK_OPTION_NAMES = (Path(__file__).parent / "spark_option_names.txt").read_text(encoding="ascii").split()

SECRETS = {
    "kafka.sasl.jaas.config",
    "kafka.sasl.password",
    "kafka.ssl.key.password",
    "kafka.ssl.keystore.key",
    "kafka.ssl.keystore.password",
    "kafka.ssl.truststore.password",
    "kafka.sasl.oauthbearer.client.credentials.client.secret",
    "schema.registry.basic.auth.user.info",
    "schema.registry.bearer.auth.token",
    "schema.registry.ssl.key.password",
}


def _parse_write(raw: Mapping[str, Any]) -> object:
    return parse_write_options(raw, streaming=True)


def test_every_property_of_javas_clients_is_answered() -> None:
    missing = [name for name in JAVA_PROPERTIES if OPTIONS.get(f"kafka.{name}") is None]
    assert not missing, "\n".join(missing)


def test_every_option_of_sparks_connector_is_known_in_its_spelling() -> None:
    found = {name: OPTIONS.get(name) for name in SPARK_OPTION_NAMES}
    missing = [name for name, option in found.items() if option is None or option.name != name]
    assert not missing, "\n".join(missing)


def _lacks(option: Option) -> Iterator[str]:
    """Yield what the status of an entry needs and the entry lacks."""
    if not option.doc:
        yield "a text"
    if option.status is Status.USED:
        if option.parse is None:
            yield "a parser"
        if not option.scopes or option.scopes & option.no_effect_in:
            yield "scopes, in which it has an effect"
    if option.status is Status.NO_EFFECT:
        if option.no_effect_in != EVERYWHERE:
            yield "all scopes in no_effect_in"
        # It stands after "has no effect: " and before a full stop.
        if option.doc.endswith("."):
            yield "a text without a full stop"
    elif not option.doc.endswith("."):
        yield "a full stop"


def test_an_entry_says_what_its_status_needs() -> None:
    found = [f"{option.name} lacks {what}" for option in OPTIONS for what in _lacks(option)]
    assert not found, "\n".join(found)


def test_every_option_is_compared_with_sparks_connector() -> None:
    found = [f"set parity= in the entry of '{option.name}'" for option in OPTIONS if not option.parity]
    assert not found, "\n".join(found)


def test_an_option_is_ours_where_sparks_connector_does_not_have_it() -> None:
    others = [option for option in OPTIONS if not option.name.startswith("kafka.")]
    assert [one.name for one in others if (one.parity == OURS) is (one.name in SPARK_OPTION_NAMES)] == []
    # The last column of the page says it, once.
    assert [one.name for one in others if "Not an option of Spark" in one.doc] == []


# Defaults of ConsumerConfig and ProducerConfig of kafka-clients 4.3.0, and those that Spark's connector sets itself:
# byte sizes and milliseconds of what is a number on the page.
DEFAULTS_THERE = {
    "maxTriggerDelay": 900_000,
    "fetchOffset.numRetries": 3,
    "fetchOffset.retryIntervalMs": 1_000,
    "kafka.request.timeout.ms": 30_000,
    "kafka.default.api.timeout.ms": 60_000,
    "kafka.socket.connection.setup.timeout.ms": 10_000,
    "kafka.retry.backoff.ms": 100,
    "kafka.retry.backoff.max.ms": 1_000,
    "kafka.metadata.max.age.ms": 300_000,
    "kafka.receive.buffer.bytes": 65_536,
    "kafka.send.buffer.bytes": 131_072,
    "kafka.fetch.max.bytes": 52_428_800,
    "kafka.max.partition.fetch.bytes": 1_048_576,
    "kafka.fetch.min.bytes": 1,
    "kafka.fetch.max.wait.ms": 500,
    "kafka.batch.size": 16_384,
    "kafka.max.request.size": 1_048_576,
    "kafka.delivery.timeout.ms": 120_000,
    "kafka.max.in.flight.requests.per.connection": 5,
    "kafka.buffer.memory": 33_554_432,
    "kafka.max.block.ms": 60_000,
}


def test_another_default_than_there_is_said() -> None:
    same = [name for name, there in DEFAULTS_THERE.items() if OPTIONS[name].default == there]
    assert [name for name in same if "by default there" in OPTIONS[name].parity] == []
    others = {name: f"{there} by default" for name, there in DEFAULTS_THERE.items() if name not in same}
    assert [name for name, text in others.items() if text not in OPTIONS[name].parity] == []


def test_options_that_sparks_connector_refuses_are_refused() -> None:
    # The forbidden parameters of KafkaSourceProvider, for reads and for writes.
    refused = {option.name for option in OPTIONS if option.parity == REFUSED_THERE}
    assert refused == {
        f"kafka.{name}"
        for name in (
            "auto.offset.reset",
            "enable.auto.commit",
            "interceptor.classes",
            "key.deserializer",
            "value.deserializer",
            "key.serializer",
            "value.serializer",
        )
    }
    assert all(OPTIONS[name].status is Status.REFUSED for name in refused)


@pytest.mark.parametrize(
    ("parse", "changes"),
    [
        (parse_batch_read_options, {"subscribe": "no topic"}),
        (parse_batch_read_options, {"assign": '{"t":[1,1]}', "subscribe": None}),
        (parse_batch_read_options, {"startingOffsets": '{"t":{"0":-3}}'}),
        (parse_batch_read_options, {"endingOffsets": '{"t":{"0":-3}}'}),
        (parse_stream_read_options, {"endingTimestamp": "1000"}),
        (parse_stream_read_options, {"maxOffsetsPerTrigger": "0"}),
        (parse_batch_read_options, {"kafka.ssl.truststore.type": "BCFKS"}),
        (parse_batch_read_options, {"kafka.sasl.mechanism": "DIGEST-MD5"}),
        (_parse_write, {"topic": "no topic"}),
        (_parse_write, {"kafka.bootstrap.servers": None}),
        (_parse_write, {"kafka.acks": "1"}),
        (_parse_write, {"kafka.max.in.flight.requests.per.connection": "6"}),
    ],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_a_value_that_the_page_calls_refused_is_refused(parse: Any, changes: dict[str, str | None]) -> None:
    given = {"kafka.bootstrap.servers": "b:9092"}
    given |= {"topic": "t"} if parse is _parse_write else {"subscribe": "t"}
    parse(given)
    raw = {name: value for name, value in (given | changes).items() if value is not None}
    (changed,) = (name for name, value in changes.items() if value is not None or len(changes) == 1)
    with pytest.raises(OptionError, match=re.escape(changed)):
        parse(raw)


def test_an_option_that_is_refused_or_has_no_effect_is_never_called_the_same() -> None:
    assert [one.name for one in OPTIONS if one.status is not Status.USED and one.parity.startswith(SAME)] == []


def test_an_option_that_holds_a_secret_is_marked() -> None:
    assert [name for name in sorted(SECRETS) if not OPTIONS[name].secret] == []


def test_two_entries_of_one_name_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="'Topic' is declared twice"):
        OptionTable([Option("topic", "One."), Option("Topic", "Two.")])


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("startingofsets", "startingOffsets"),
        ("starting_offsets", "startingOffsets"),
        ("subscribepatern", "subscribePattern"),
        ("bootstrap.servers", "kafka.bootstrap.servers"),
        ("bootstrapservers", "kafka.bootstrap.servers"),
        ("kafka.bootstrap.server", "kafka.bootstrap.servers"),
        ("kafka.securityprotocol", "kafka.security.protocol"),
        ("maxoffsetspertriger", "maxOffsetsPerTrigger"),
        ("xyzzy", None),
    ],
)
def test_the_nearest_name_is_the_one_that_was_meant(typed: str, meant: str | None) -> None:
    assert OPTIONS.nearest(typed, frozenset({Scope.STREAM_READ})) == meant


def test_the_nearest_name_can_be_given_in_the_scope() -> None:
    assert OPTIONS.nearest("maxoffsetspertriger", WRITES) is None
    assert OPTIONS.nearest("maxoffsetspertriger", WRITES | READS) == "maxOffsetsPerTrigger"
