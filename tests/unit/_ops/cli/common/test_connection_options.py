"""How commands read an address and a file of Java client properties."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.texts import said
from pyspark_kafka._client.options import ConnectionOptions, PlainLogin, Secret
from pyspark_kafka._ops.cli.common.arguments import settings_of
from pyspark_kafka._ops.cli.common.connection_options import parse_properties
from pyspark_kafka.errors import OptionError

PASSWORD = "correct-horse"  # noqa: S105 - of nobody


def resolve(servers: str | None, file: Path | None) -> tuple[ConnectionOptions, tuple[str, ...]]:
    found = settings_of(servers, file, None, None)
    return found.connection, found.notes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("# comment\n  ! another\n\n \t\n", {}),
        ("a=b", {"a": "b"}),
        ("a = b\r\nc : d\re f", {"a": "b", "c": "d", "e": "f"}),
        ("a==b", {"a": "=b"}),
        ("a", {"a": ""}),
        ("a=b  ", {"a": "b  "}),
        ("a\\ b\\=c=d", {"a b=c": "d"}),
        ("a=x\\\n   y\\\n\tz\nb=1", {"a": "xyz", "b": "1"}),
        ("a=x\\\\\nb=1", {"a": "x\\", "b": "1"}),
        ("a=x\\", {"a": "x"}),
        ("# comment\\\na=b", {"a": "b"}),
        (r"a=\u00e9\t\n\q", {"a": "é\t\nq"}),
        ("a=1\na=2", {"a": "2"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert {name: value for name, (_, value) in parse_properties(text).items()} == expected


def test_an_entry_knows_the_line_where_it_begins() -> None:
    assert parse_properties("# one\na=1\\\n2\n\nb=3") == {"a": (2, "12"), "b": (5, "3")}


def test_the_address_wins_over_that_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=one:1,two:2\n")
    assert resolve(None, file)[0].bootstrap_servers == (("one", 1), ("two", 2))
    assert resolve("three:3", file)[0].bootstrap_servers == (("three", 3),)
    with pytest.raises(OptionError, match=r"^\[OPTION_MISSING\] No broker is named\. Hint: Pass --bootstrap-servers"):
        resolve(None, None)


def test_a_file_for_kafkas_own_tools_will_do(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\\n"
        f'    username="alice" \\\n    password="{PASSWORD}";\n'
        # Not about connections.
        "group.id=g\nauto.offset.reset=earliest\nacks=1\nenable.idempotence=true\ntransactional.id=t\n"
        "key.serializer=org.apache.kafka.common.serialization.StringSerializer\n"
        "default.api.timeout.ms=5000\n"
    )
    options, notes = resolve("host:9092", file)
    assert options.security_protocol == "SASL_PLAINTEXT"
    assert options.login == PlainLogin("alice", Secret(PASSWORD))
    assert options.api_timeout_ms == 5_000
    assert PASSWORD not in repr(options)
    assert [note.split(" the password")[0] for note in notes] == [
        "With kafka.security.protocol 'SASL_PLAINTEXT' and kafka.sasl.mechanism 'PLAIN'"
    ]


@pytest.mark.parametrize(
    ("text", "condition", "said"),
    [
        ("security.protcol=SSL", "OPTION_UNKNOWN", "Did you mean 'kafka.security.protocol'?"),
        (
            "ssl.truststore.password=correct-horse",
            "OPTION_CONFLICT",
            "'kafka.ssl.truststore.password' is given, but with",
        ),
        ("sasl.mechanism=PLAIN", "OPTION_CONFLICT", "connections would not log in"),
        # A jaas configuration whose backslash is missing.
        ("sasl.mechanism=PLAIN\ncorrect-horse;", "CONFIG_INVALID", "Line 2 of the file of --config, "),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=correct-horse", "OPTION_INVALID", "jaas"),
        (r"sasl.jaas.config=correct-horse\u12", "CONFIG_INVALID", "Hint: A backslash in a value is written twice"),
    ],
)
def test_a_file_with_a_mistake_is_refused_without_its_secrets(
    tmp_path: Path, text: str, condition: str, said: str
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(text)
    with pytest.raises(OptionError) as caught:
        resolve("host:9092", file)
    assert caught.value.condition == condition
    assert said in str(caught.value)
    assert PASSWORD not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = tmp_path / "none.properties"
    with pytest.raises(OptionError) as caught:
        resolve("host:9092", file)
    assert said(caught.value) == (
        f"[CONFIG_UNREADABLE] The file of --config, {file}, cannot be read: No such file or directory."
        " Hint: Pass the path of a client.properties file that you may read."
    )
