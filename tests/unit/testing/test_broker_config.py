from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from pyspark_kafka.testing.broker_config import (
    BrokerAddress,
    build_java_command,
    build_logging_text,
    build_properties,
    explain_log,
    new_cluster_id,
    to_properties_text,
)

ADDRESS = BrokerAddress(port=9092, controller_port=9093)


def test_a_cluster_id_never_looks_like_an_option_of_a_command_line() -> None:
    as_option, plain = uuid.UUID(bytes=b"\xf8" + bytes(15)), uuid.UUID(bytes=b"\x04" + bytes(15))
    drawn = iter([as_option, as_option, plain])
    assert new_cluster_id(lambda: next(drawn)) == "BAAAAAAAAAAAAAAAAAAAAA"
    assert len(new_cluster_id()) == 22


def test_the_broker_listens_on_loopback_only() -> None:
    properties = build_properties(ADDRESS, Path("/data"))
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert properties["advertised.listeners"] == f"PLAINTEXT://{ADDRESS.bootstrap_servers}"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:9093"


def test_topics_are_never_made_by_accident_and_nothing_expires() -> None:
    properties = build_properties(ADDRESS, Path("/data"), default_partitions=3)
    assert properties["auto.create.topics.enable"] == "false"
    assert properties["log.retention.ms"] == "-1"
    assert properties["num.partitions"] == "3"


def test_given_properties_replace_the_defaults() -> None:
    properties = build_properties(ADDRESS, Path("/data"), overrides={"num.partitions": "7", "message.max.bytes": "9"})
    assert properties["num.partitions"] == "7"
    assert properties["message.max.bytes"] == "9"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain text", "a=plain text\n"),
        (" leading", "a=\\ leading\n"),
        ("C:\\data", "a=C:\\\\data\n"),
        ("two\nlines", "a=two\\nlines\n"),
        ("größe", "a=gr\\u00f6\\u00dfe\n"),
        ("\U0001f600", "a=\\ud83d\\ude00\n"),
        ("b=c:d#e", "a=b=c:d#e\n"),
    ],
)
def test_values_are_escaped_as_java_reads_them(value: str, written: str) -> None:
    assert to_properties_text({"a": value}) == written


def test_names_are_escaped_and_sorted() -> None:
    assert to_properties_text({"b": "1", "a key=": "2"}) == "a\\ key\\==2\nb=1\n"


@pytest.mark.parametrize(("version", "flag"), [("4.3.0", "log4j2."), ("3.9.2", "log4j.configuration")])
def test_logging_fits_the_version_and_goes_to_standard_output(version: str, flag: str) -> None:
    argument, text = build_logging_text(version)
    assert flag in argument.format(file="/x")
    assert argument.format(file="/x").endswith("/x")
    assert "Console" in text


def test_the_command_names_the_class_after_the_class_path() -> None:
    command = build_java_command(Path("/j/java"), "/jars/*", "kafka.Kafka", ("s",), heap="1g", flags=("-XX:+A",))
    assert command[0] == "/j/java"
    assert command[-4:] == ["-cp", "/jars/*", "kafka.Kafka", "s"]
    assert {"-Xmx1g", "-XX:+A"} <= set(command)


def test_a_log_is_explained_from_its_first_error_on_without_stack_frames() -> None:
    log = "t INFO fine\nt ERROR Exiting (x)\njava.lang.IllegalStateException: no\n\tat a.b\n\t... 3 more\nt INFO end\n"
    assert explain_log(log) == "t ERROR Exiting (x)\njava.lang.IllegalStateException: no\nt INFO end"


def test_a_log_without_an_error_is_explained_by_its_last_lines() -> None:
    assert explain_log("a\nb\n\nc\n", lines=2) == "b\nc"
