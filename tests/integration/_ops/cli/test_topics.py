"""`pyspark-kafka topics` against a real broker: what is listed, created and described, and what is refused."""

from __future__ import annotations

import json
import uuid

import pytest
from typer.testing import Result

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.programs.cli import invoke


def run(servers: str, command: str, *arguments: str) -> Result:
    return invoke("topics", command, "--bootstrap-servers", servers, *arguments)


@pytest.fixture
def name() -> str:
    return f"cli-{uuid.uuid4().hex}"


def test_topic_is_created_listed_and_described(bootstrap_servers: str, name: str) -> None:
    made = run(bootstrap_servers, "create", name, "--partitions", "3", "--topic-config", "retention.ms=60000")
    assert (made.exit_code, made.output) == (0, f"Topic '{name}' has 3 partitions, with 1 replica each.\n")
    listed = run(bootstrap_servers, "list", name, "--json")
    assert json.loads(listed.output) == [{"topic": name, "partitions": 3, "replicas": 1}]
    produce(bootstrap_servers, name, [Record(None, b"v" * 100, 1)] * 5)
    described = json.loads(run(bootstrap_servers, "describe", name, "--json").output)
    ends = [(each["partition"], each["first_offset"], each["end_offset"]) for each in described["partitions"]]
    assert ends == [(0, 0, 0), (1, 0, 5), (2, 0, 0)]
    assert described["partitions"][1]["bytes"] > described["partitions"][0]["bytes"] == 0
    assert described["settings"]["retention.ms"] == "60000"
    assert described["settings"]["cleanup.policy"] == "delete"


def test_rows_are_lines_for_other_programs(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic(2)
    lines = run(bootstrap_servers, "describe", topic).output.splitlines()
    assert " ".join(lines[0].split()) == "partition leader replicas in sync first offset end offset bytes"
    assert [line.split()[0] for line in lines[1:3]] == ["0", "1"]
    assert "min.insync.replicas = 1" in lines
    assert run(bootstrap_servers, "list", topic).output.splitlines()[1].split() == [topic, "2", "1"]


def test_internal_topics_are_listed_if_they_are_asked_for(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    make_topic()
    listed = run(bootstrap_servers, "list", "__")
    assert listed.output == "No topic whose name contains '__', among the topics that this user may describe.\n"
    with_internal = run(bootstrap_servers, "list", "__", "--internal", "--json")
    assert all(each["topic"].startswith("__") for each in json.loads(with_internal.output or "[]"))


@pytest.mark.parametrize("command", [("describe",), ("create", "--topic-config", "retention.ms")])
def test_command_that_fails_prints_a_sentence(bootstrap_servers: str, name: str, command: tuple[str, ...]) -> None:
    done = run(bootstrap_servers, command[0], name, *command[1:])
    assert done.exit_code == 2
    assert done.output.startswith("[UNKNOWN_TOPIC]" if command == ("describe",) else "[ARGUMENT_INVALID]")
    assert run(bootstrap_servers, "list", name, "--json").output == "[]\n"


def test_topic_that_exists_is_not_created_again(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic()
    done = run(bootstrap_servers, "create", topic, "--partitions", "9")
    assert done.exit_code == 2
    assert "TOPIC_ALREADY_EXISTS" in done.output
    assert json.loads(run(bootstrap_servers, "list", topic, "--json").output)[0]["partitions"] == 1
