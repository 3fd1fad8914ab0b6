"""The table itself: complete against Java's clients and Spark's connector, and in step with the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_kafka.options.catalogue import OPTIONS
from pyspark_kafka.options.docs import render_options
from pyspark_kafka.options.table import EVERYWHERE, Option, OptionTable, Scope, Status

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
}


@pytest.mark.parametrize("name", JAVA_PROPERTIES)
def test_every_property_of_javas_clients_is_answered(name: str) -> None:
    assert OPTIONS.get(f"kafka.{name}") is not None


@pytest.mark.parametrize("name", SPARK_OPTION_NAMES)
def test_every_option_of_sparks_connector_is_known_in_its_spelling(name: str) -> None:
    assert OPTIONS[name].name == name


@pytest.mark.parametrize("option", list(OPTIONS), ids=lambda option: option.name)
def test_an_entry_says_what_its_status_needs(option: Option) -> None:
    assert option.doc
    if option.status is Status.USED:
        assert option.parse is not None
        assert option.scopes
        assert not option.scopes & option.no_effect_in
        assert option.doc.endswith((".", "…"))
    elif option.status is Status.NO_EFFECT:
        assert option.no_effect_in == EVERYWHERE
        # It stands after "has no effect: " and before a full stop.
        assert not option.doc.endswith(".")
    else:
        assert option.doc.endswith(".")


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_what_holds_a_secret_is_marked(name: str) -> None:
    assert OPTIONS[name].secret


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
    assert OPTIONS.nearest(typed, Scope.STREAM_READ) == meant


def test_the_nearest_name_can_be_given_in_the_scope() -> None:
    assert OPTIONS.nearest("maxoffsetspertriger", Scope.BATCH_WRITE) is None


def test_the_documentation_page_is_the_rendered_table() -> None:
    page = Path(__file__).parents[3] / "docs" / "options.md"
    assert page.read_text(encoding="utf-8") == render_options(), (
        "run: python -m pyspark_kafka.options.docs > docs/options.md"
    )


def test_the_documentation_names_every_option() -> None:
    page = render_options()
    assert [option.name for option in OPTIONS if f"| `{option.name}` |" not in page] == []
