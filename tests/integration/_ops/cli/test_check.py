"""`pyspark-kafka check`: the page of the docs, line by line; exit status, JSON, and secrets that stay unseen."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kit.brokers.two_brokers import free_ports
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.programs.cli import invoke

_DOC = Path(__file__).parents[4] / "docs" / "check.md"
_TIME_OF_THE_PAGE = 1_767_225_600_000
# What differs between two runs, and how the page has it.
_VARYING = (
    (r"^(✓ packages    ).*", r"\1…"),
    (r"\d+(\.\d+)? ms", "… ms"),
    (r"\d+\.\d s(?=[).])", "… s"),
    (r"(Cluster )\S+:", r"\1…:"),
    (r"(Kafka )\d\.\d", r"\1…"),
)


def page(text: str) -> str:
    """Return text of the page, or of a run, without what differs."""
    for pattern, shown in _VARYING:
        text = re.sub(pattern, shown, text, flags=re.MULTILINE)
    return text


def test_commands_of_the_page_print_what_the_page_shows(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic()
    records = [Record(b"k", b"value", timestamp_ms=_TIME_OF_THE_PAGE) for _ in range(3)]
    produce(bootstrap_servers, topic, records)
    port = bootstrap_servers.rpartition(":")[2]
    shown = re.findall(
        r"```sh\npyspark-kafka (check --bootstrap[^\n]*)\n```\n\n```text\n(.*?)```", _DOC.read_text(), re.DOTALL
    )
    assert len(shown) == 2
    for command, expected in shown:
        arguments = command.replace("localhost:9092", f"localhost:{port}").replace("=orders", f"={topic}").split()
        ran = invoke(*arguments)
        found = ran.stdout.replace(f"127.0.0.1:{port}", "localhost:9092").replace(f"localhost:{port}", "localhost:9092")
        assert page(found.replace(topic, "orders")) == page(expected)
        assert ran.exit_code == (0 if "Everything works" in expected else 1)


def test_json_is_one_object_and_the_exit_status_says_whether_all_is_well(bootstrap_servers: str) -> None:
    done = invoke("check", "--bootstrap-servers", bootstrap_servers, "--json")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["ok"], told["schema"]) == (0, True, 1)
    (port,) = free_ports(1)
    failed = invoke("check", "--bootstrap-servers", f"127.0.0.1:{port}", "--json")
    assert (failed.exit_code, json.loads(failed.stdout)["ok"]) == (1, False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("-o", "hunter2"),
        ("--options", "/no/such/file"),
        ("--config", "/no/such/file"),
        ("--spark", "local[1]", "--remote", "sc://localhost"),
        ("--timeout", "0"),
        ("--spark", "local[1]", "--spark-conf", "hunter2"),
    ],
)
def test_wrong_use_is_exit_status_2_and_judges_nothing(arguments: tuple[str, ...]) -> None:
    done = invoke("check", *arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "hunter2" not in done.stderr


def test_options_of_a_file_are_those_of_the_query(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    file = tmp_path / "query.json"
    file.write_text(json.dumps({"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic, "minPartitions": 2}))
    done = invoke("check", "--options", str(file))
    assert done.exit_code == 0
    assert f"Read: all rights are there ({topic})." in done.stdout


def test_password_of_a_refused_login_is_in_no_line(bootstrap_servers: str, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        'sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="a" '
        'password="hunter2";\n'
    )
    for more in ((), ("--json",)):
        done = invoke("check", "--config", str(config), "--bootstrap-servers", bootstrap_servers, *more)
        assert done.exit_code == 1
        assert "hunter2" not in done.output
