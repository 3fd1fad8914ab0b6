"""What a topic's configuration says about deleting old records."""

from __future__ import annotations

import pytest

from pyspark_kafka.planning.retention import CONFIG_NAMES, RetentionPolicy, parse_policy


def test_policy_has_the_limits_of_a_topic() -> None:
    configs = {"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "1073741824"}
    assert parse_policy(configs) == RetentionPolicy(retention_ms=604_800_000, retention_bytes=1_073_741_824)
    assert set(configs) < set(CONFIG_NAMES)


@pytest.mark.parametrize("text", ["-1", "-2", "", None, "soon"])
def test_limit_that_is_no_number_of_its_own_is_none(text: str | None) -> None:
    assert parse_policy({"retention.ms": text, "retention.bytes": text}) == RetentionPolicy()


def test_limit_of_nothing_is_a_limit() -> None:
    assert parse_policy({"retention.ms": "0"}).retention_ms == 0


@pytest.mark.parametrize(
    ("text", "deletes"),
    [("delete", True), ("compact", False), ("compact,delete", True), ("delete, compact", True), (None, True)],
)
def test_policy_deletes_only_where_it_says_so(text: str | None, deletes: bool) -> None:
    assert parse_policy({"cleanup.policy": text}).deletes is deletes


def test_remote_storage_is_known() -> None:
    assert parse_policy({"remote.storage.enable": "true"}).is_tiered
    assert not parse_policy({"remote.storage.enable": "false"}).is_tiered
