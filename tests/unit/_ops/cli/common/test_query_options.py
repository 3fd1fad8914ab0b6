"""Options of a query out of files, arguments and environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyspark_kafka._ops.cli.common.query_options import collect_options
from pyspark_kafka.errors import OptionError


def test_a_later_place_takes_precedence_whatever_the_case_and_the_prefix(tmp_path: Path) -> None:
    config, options = tmp_path / "client.properties", tmp_path / "options.json"
    config.write_text("security.protocol=SSL\nssl.truststore.location=/a\nbootstrap.servers=a:1\n")
    options.write_text(json.dumps({"kafka.Security.Protocol": "SASL_SSL", "subscribe": "t", "minPartitions": 3}))
    found = collect_options(config, options, ["SECURITY.PROTOCOL=PLAINTEXT", "x=a=b"], "b:2")
    assert found == {
        "kafka.ssl.truststore.location": "/a",
        "subscribe": "t",
        "minPartitions": 3,
        "SECURITY.PROTOCOL": "PLAINTEXT",
        "x": "a=b",
        "kafka.bootstrap.servers": "b:2",
    }


@pytest.mark.parametrize("text", ["hunter2", "=hunter2"])
def test_an_argument_without_a_name_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(OptionError) as caught:
        collect_options(None, None, [text], None)
    assert caught.value.condition == "ARGUMENT_INVALID"
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"a": "hunter2", }', "it is not JSON (line 1)"),
        ('["hunter2"]', "it is not an object with the names of options"),
        ('{"a": {"b": "hunter2"}}', "the value of 'a' is not a text, a number or true or false"),
        ("[" * 100_000, "it is not JSON"),
    ],
)
def test_a_file_of_another_form_is_refused_without_its_content(content: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "options.json"
    file.write_text(content)
    with pytest.raises(OptionError) as caught:
        collect_options(None, file, [], None)
    assert caught.value.condition == "CONFIG_INVALID"
    assert reason in caught.value.message
    assert "hunter2" not in f"{caught.value} {caught.value.__cause__} {caught.value.__context__}" or (
        caught.value.__suppress_context__
    )


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError) as caught:
        collect_options(None, tmp_path / "none.json", [], None)
    assert caught.value.condition == "CONFIG_UNREADABLE"
