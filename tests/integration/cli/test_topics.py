"""`pyspark-kafka topics` against a real broker: created and listed topics."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

import pytest

from kit.programs.cli import invoke, warnings_of

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

    from kit.fixtures.broker import TopicMaker
    from pyspark_kafka.testing import EmbeddedKafka


@pytest.fixture
def name() -> str:
    return f"topics-{uuid.uuid4().hex[:12]}"


def run(bootstrap_servers: str, *arguments: str) -> Result:
    return invoke("topics", *arguments, "--bootstrap-servers", bootstrap_servers)


def test_created_topic_is_listed_with_the_properties_of_the_request(bootstrap_servers: str, name: str) -> None:
    values = ("--set", "retention.ms=86400000", "--set", "cleanup.policy=compact,delete")
    done = run(bootstrap_servers, "create", name, "--partitions", "3", "--replication-factor", "1", *values)
    assert (done.exit_code, warnings_of(done)) == (0, "")
    assert done.stdout == (
        f"Topic '{name}' is created: 3 partitions, replication factor 1, retention.ms=86400000, "
        "cleanup.policy=compact,delete.\n"
    )
    listed = run(bootstrap_servers, "list", "--prefix", name, "--json")
    assert json.loads(listed.stdout) == [
        {
            "topic": name,
            "partitions": 3,
            "replication_factor": 1,
            "internal": False,
            "under_replicated": 0,
            "leaderless": 0,
        }
    ]


def test_topic_that_exists_is_an_error_or_is_compared(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    name = make_topic(2)
    refused = run(bootstrap_servers, "create", name)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "[TOPIC_ALREADY_EXISTS]" in refused.stderr
    assert "Hint: Choose another name, or pass --if-not-exists" in refused.stderr
    left = run(bootstrap_servers, "create", name, "--if-not-exists", "--partitions", "2")
    assert (left.exit_code, warnings_of(left)) == (0, "")
    assert "exists already (2 partitions, replication factor 1), and is left as it is." in left.stdout
    other = run(bootstrap_servers, "create", name, "--if-not-exists", "--partitions", "5", "--json")
    assert other.exit_code == 1
    told = json.loads(other.stdout)
    assert (told["created"], told["partitions"], told["differs"]) == (False, 2, ["It has 2 partitions, not 5."])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--set", "retention.ms=soon"), "INVALID_CONFIG"),
        (("--set", "retention"), "NAME=VALUE"),
        (("--set", "a=1", "--set", "a=2"), "twice"),
        (("--replication-factor", "9"), "INVALID_REPLICATION_FACTOR"),
        (("--partitions", "0"), "--partitions"),
    ],
)
def test_topic_that_cannot_be_created_is_an_error(
    bootstrap_servers: str, name: str, arguments: tuple[str, ...], said: str
) -> None:
    done = run(bootstrap_servers, "create", name, *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert name not in run(bootstrap_servers, "list").stdout


def test_topics_are_listed_by_prefix_and_pattern_without_the_brokers_own(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    one, two = make_topic(), make_topic(4)
    done = run(bootstrap_servers, "list")
    assert (done.exit_code, warnings_of(done)) == (0, "")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[0] == ["topic", "partitions", "replication", "not", "well"]
    assert [one, "1", "1", "-"] in rows
    assert [two, "4", "1", "-"] in rows
    assert not any(row[0].startswith("__") for row in rows)
    chosen = run(bootstrap_servers, "list", "--prefix", one[:4], "--match", f"{two[4:]}$", "--json")
    assert [each["topic"] for each in json.loads(chosen.stdout)] == [two]
    assert run(bootstrap_servers, "list", "--match", "[").exit_code == 2
    none = run(bootstrap_servers, "list", "--prefix", "no-such-topic")
    assert none.stdout == "There is no topic that was asked for, among those that this user may describe.\n"


def test_secured_cluster_is_reached_with_the_options_of_every_place(
    secured_kafka: EmbeddedKafka, tmp_path: Path, name: str
) -> None:
    given = secured_kafka.client_options("SASL_SSL", "alice")
    properties, options = tmp_path / "client.properties", tmp_path / "options.json"
    lines = {key.removeprefix("kafka."): value.replace("\\", "\\\\") for key, value in given.items()}
    properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    options.write_text(json.dumps({**given, "subscribe": "orders", "startingOffsets": "earliest"}))
    created = invoke("topics", "create", name, "--config", str(properties))
    assert created.exit_code == 0, created.output
    for place in (["--config", str(properties)], ["--options", str(options)], [f"-o{k}={v}" for k, v in given.items()]):
        done = invoke("topics", "list", "--prefix", name, "--json", *place)
        assert [each["topic"] for each in json.loads(done.stdout)] == [name], done.output
    bob = secured_kafka.client_options("SASL_SSL", "bob")
    none = invoke("topics", "list", "--json", *[f"-o{key}={value}" for key, value in bob.items()])
    assert (none.exit_code, json.loads(none.stdout)) == (0, [])
