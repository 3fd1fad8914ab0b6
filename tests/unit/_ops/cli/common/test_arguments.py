"""Options for a connection, as every command takes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyspark_kafka._ops.cli.common.arguments import connection_of, is_connected, settings_of
from pyspark_kafka.errors import OptionError


@pytest.mark.parametrize("name", ["bootstrap.servers", "kafka.bootstrap.servers", "Kafka.Bootstrap.Servers"])
def test_address_may_come_from_any_place(tmp_path: Path, name: str) -> None:
    file = tmp_path / "options.json"
    file.write_text(json.dumps({name: "one:1"}))
    assert connection_of(None, None, file, None).bootstrap_servers == (("one", 1),)
    assert connection_of(None, None, None, [f"{name}=two:2"]).bootstrap_servers == (("two", 2),)
    assert connection_of("three:3", None, file, None).bootstrap_servers == (("three", 3),)
    assert is_connected(None, None, file, None)


def test_options_of_a_query_are_taken_along() -> None:
    found = settings_of("one:1", None, None, ["subscribe=orders", "kafka.client.id=me"])
    assert found.read is not None
    assert found.connection.client_id == "me"


def test_missing_address_is_named() -> None:
    assert not is_connected(None, None, None, ["subscribe=orders"])
    with pytest.raises(OptionError, match="No broker is named"):
        connection_of(None, None, None, ["subscribe=orders"])
