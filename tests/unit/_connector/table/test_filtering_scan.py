"""A batch read with filters: who gets one, and what it leaves to the engine."""

from __future__ import annotations

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.source.driver.batch import KafkaBatch
from pyspark_kafka._connector.table.filtering_scan import FilteringKafkaScanBuilder
from pyspark_kafka._connector.table.kafka_table import KafkaTable
from pyspark_kafka.connector import SupportsPushDownFilters
from pyspark_kafka.connector.filters import EqualTo, GreaterThan, IsNull

READ = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}


@pytest.mark.parametrize(
    ("options", "takes"),
    [
        ({"pushDownPredicate": "TRUE"}, True),
        ({"pushDownPredicate": "false"}, False),
        ({}, False),
        # Refused later, with the reason.
        ({"pushDownPredicate": "perhaps"}, False),
        ({"pushDownPredicate": "true", "endingOffsets": "never"}, False),
    ],
)
def test_builder_takes_filters_only_if_the_option_asks_for_it(options: dict[str, str], *, takes: bool) -> None:
    assert isinstance(KafkaTable().newScanBuilder({**READ, **options}), SupportsPushDownFilters) == takes


def test_filters_narrow_the_read_and_the_others_are_returned() -> None:
    builder = FilteringKafkaScanBuilder({**READ, "pushDownPredicate": "true"})
    kept = IsNull(("key",))
    assert builder.pushFilters([EqualTo(("partition",), 1), kept, GreaterThan(("offset",), 5)]) == [kept]
    batch = builder.build().toBatch()
    assert isinstance(batch, KafkaBatch)
    wanted = batch._filter
    assert [wanted.takes(TopicPartition("t", number)) for number in range(3)] == [False, True, False]
    assert wanted.offset_from == 6
