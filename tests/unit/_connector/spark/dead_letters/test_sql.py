"""Texts of users in SQL."""

from __future__ import annotations

from typing import Any

import pytest

from pyspark_kafka._connector.spark.dead_letters.sql import check_topic, text
from pyspark_kafka.errors import OptionError


@pytest.mark.parametrize("topic", ["", None, 7, "\ud800", "orders\udfff", "\ud83d\ude00"])
def test_a_text_that_cannot_be_a_topic_is_refused(topic: Any) -> None:
    with pytest.raises(
        OptionError, match=r"\[OPTION_INVALID\] Argument 'topic' is .*must be the name of a topic"
    ) as found:
        check_topic(topic, "topic")
    assert str(found.value).encode()


@pytest.mark.parametrize("topic", ["orders.dead", "it's `dead`", "\U0001f600"])
def test_a_text_that_is_accepted_can_be_written_in_sql(topic: str) -> None:
    check_topic(topic, "topic")
    assert text(topic) == f"CAST(X'{topic.encode().hex()}' AS STRING)"
