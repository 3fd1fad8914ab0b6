"""Options and the fields of the value classes: each has the other, or a module that resolves it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import pyspark_kafka
from pyspark_kafka._client.options import (
    OPTIONS,
    parse_batch_read_options,
    parse_stream_read_options,
    parse_write_options,
)
from pyspark_kafka._client.options.catalogue.option import Option, Scope, Status
from pyspark_kafka._client.options.values import VALUE_CLASSES
from pyspark_kafka._client.options.values.read import ReadOptions

PACKAGE = Path(pyspark_kafka.__file__).parent
USED = [option for option in OPTIONS if option.status is Status.USED]

# Fields that no option sets as it is: the module of `resolve` that sets them.
RESOLVED_FIELDS = {
    "connection.login": "security",
    "connection.tls": "security",
    "tls.truststore": "tls",
    "tls.keystore": "tls",
    "tls.versions": "tls",
    "tls.ciphers": "tls",
    "subscription.kind": "read",
    "read.connection": "read",
    "read.subscription": "read",
    "read.fetch": "read",
    "read.typed": "read",
    "read.trace": "read",
    "read.starting": "read",
    "read.notes": "read",
    "batch_read.ending": "read",
    "producer.compression_level": "write",
    "write.connection": "write",
    "write.producer": "write",
    "write.exactly_once": "write",
    "write.patient_delivery_timeout_ms": "write",
    "exactly_once.task_timeout_ms": "write",
    "write.typed": "write",
    "write.trace": "write",
    "write.notes": "write",
    **dict.fromkeys(
        [
            f"format.{name}"
            for name in (
                "format",
                "framing",
                "schema",
                "subject",
                "schema_version",
                "message",
                "timestamp_format",
                "date_format",
                "open_parts",
            )
        ],
        "formats",
    ),
    **dict.fromkeys([f"typed_read.{name}" for name in ("key", "value", "registry")], "formats"),
    **dict.fromkeys([f"typed_write.{name}" for name in ("key", "value", "registry")], "formats"),
    **dict.fromkeys(
        [f"registry.{name}" for name in ("urls", "basic_auth", "ca_location", "certificate_location", "key_location")],
        "registry",
    ),
}
# Fields that nothing of a user's options sets.
NOT_OPTIONS = {
    "connection.learned_servers": "the client learns them",
}


def _declared() -> Iterator[str]:
    shared = {field.name for field in fields(ReadOptions)}
    for section, value_class in VALUE_CLASSES.items():
        for field in fields(value_class):
            if section not in ("batch_read", "stream_read") or field.name not in shared:
                yield f"{section}.{field.name}"


FIELDS = list(_declared())
TARGETS = [target for option in USED for target in (option.field, *option.also) if target]


def _source_of(module: str) -> str:
    """Return the text of a module that resolves options."""
    return (PACKAGE / "_client" / "options" / "resolve" / f"{module}.py").read_text(encoding="utf-8")


def test_an_option_that_is_used_names_its_field_or_the_module_that_resolves_it() -> None:
    assert [option.name for option in USED if bool(option.field) is bool(option.resolved_by)] == []
    # By its name, or by a pattern of names such as f"{side}Offsets" and f"kafka.compression.{codec}.level".
    pattern = re.compile(r"^(?:starting|ending|key|value)|\b(?:gzip|lz4|zstd|truststore|keystore)\b")
    found = [
        f"{option.name}: '{word}' is not in {option.resolved_by}.py"
        for option in USED
        if option.resolved_by
        for word in pattern.split(option.name)
        if word not in _source_of(option.resolved_by)
    ]
    assert not found, "\n".join(found)


def test_a_field_is_set_by_an_option_or_by_a_module_that_resolves_it() -> None:
    # outage_timeout_ms is a field of both kinds of read, but an option of streams only.
    assert "stream_read.outage_timeout_ms" in TARGETS
    others = [field for field in FIELDS if field != "read.outage_timeout_ms"]
    answers = {field: [field in TARGETS, field in RESOLVED_FIELDS, field in NOT_OPTIONS] for field in others}
    wrong = [field for field, found in answers.items() if sum(found) != 1]
    assert not wrong, "\n".join(wrong)
    resolved = {field: module for field, module in RESOLVED_FIELDS.items() if field in FIELDS}
    missing = [
        f"{field} is not in {module}.py"
        for field, module in resolved.items()
        if field.partition(".")[2] not in _source_of(module)
    ]
    assert not missing, "\n".join(missing)


def test_no_field_is_set_by_two_options() -> None:
    assert sorted(TARGETS) == sorted(set(TARGETS))


@pytest.mark.parametrize("option", [one for one in USED if one.field], ids=lambda option: option.name)
def test_a_value_that_is_given_arrives_in_its_field(option: Option) -> None:
    assert option.parse is not None
    given = {"kafka.bootstrap.servers": "b:9092", **NEEDED.get(option.name, {})}
    given.setdefault(option.name, EXAMPLES[option.name] if option.name in EXAMPLES else _example(option))
    parsed: list[object] = []
    if option.scopes & {Scope.STREAM_READ, Scope.BATCH_READ}:
        read = {"subscribe": "t"} | given if not option.name.startswith(("subscribe", "assign")) else given
        if Scope.STREAM_READ in option.scopes:
            parsed.append(parse_stream_read_options(read))
        if Scope.BATCH_READ in option.scopes:
            parsed.append(parse_batch_read_options(read))
    if Scope.STREAM_WRITE in option.scopes:
        parsed.append(parse_write_options(given, streaming=True))
    if Scope.BATCH_WRITE in option.scopes:
        # In a batch write, checkpointLocation is a key of the host.
        parsed.append(parse_write_options(given, streaming=False))
    value = option.parse(given[option.name])
    assert value != option.default, "the example is the default: choose another one in EXAMPLES"
    found = [_field(resolved, option.field) for resolved in parsed]
    assert [one for one in found if one is not None] != []
    assert all(one in (None, value) for one in found)


def _field(resolved: object, field: str) -> object:
    section, _, name = field.partition(".")
    if section == "tls":
        section, resolved = "tls", getattr(resolved, "connection", None)
    if section in ("registry", "typed_read", "typed_write"):
        resolved = getattr(resolved, "typed", None)
        return getattr(resolved if section != "registry" else getattr(resolved, section, None), name, None)
    whole = ("read", "batch_read", "stream_read", "write")
    holder = resolved if section in whole else getattr(resolved, section, None)
    return getattr(holder, name, None)


def _example(option: Option) -> str:
    if isinstance(option.default, bool):
        return str(not option.default).lower()
    if isinstance(option.default, int):
        return str(option.default + 1)
    return "7" if option.kind.startswith("whole number") else "some-text"


EXAMPLES = {
    "traceContext": "continue",
    "traceParent": f"00-{1:032x}-{2:016x}-01",
    "warnHeadroom": "6h",
    "assign": '{"t":[0]}',
    "startingOffsetsByTimestampStrategy": "latest",
    "kafka.bootstrap.servers": "other:1",
    "kafka.security.protocol": "SSL",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.isolation.level": "read_committed",
    "kafka.acks": "1",
    "kafka.compression.type": "zstd",
    "kafka.ssl.endpoint.identification.algorithm": "",
    "kafka.max.in.flight.requests.per.connection": "2",
    "mode": "PERMISSIVE",
    "exactlyOnceCommit": "tasks",
    "maxCorruptRatio": "0.25",
    "schema.registry.region": "eu-central-1",
}
_SASL = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="u" password="p";',
}
_STORES = {
    "kafka.security.protocol": "SSL",
    "kafka.ssl.keystore.location": "/keys.pem",
    "kafka.ssl.keystore.type": "PEM",
}
_ONCE = {"deliveryGuarantee": "exactly_once", "checkpointLocation": "/checkpoint"}
_AVRO = {"valueFormat": "avro", "valueSubject": "s"}
_REGISTRY = {**_AVRO, "schema.registry.url": "https://registry:8081"}
_PERMISSIVE = {**_REGISTRY, "mode": "PERMISSIVE"}
# What an option needs beside it.
NEEDED: dict[str, dict[str, str]] = {
    "traceParent": {"traceContext": "link"},
    "kafka.bootstrap.servers": {"kafka.bootstrap.servers": "other:1"},
    "kafka.sasl.mechanism": _SASL,
    "kafka.ssl.truststore.location": {"kafka.security.protocol": "SSL", "kafka.ssl.truststore.type": "PEM"},
    "kafka.ssl.keystore.location": _STORES,
    "kafka.ssl.key.password": _STORES,
    "kafka.ssl.endpoint.identification.algorithm": _STORES,
    "kafka.acks": {"kafka.enable.idempotence": "false"},
    "kafka.fetch.max.bytes": {"maxBufferedBytesPerTask": "67108864"},
    "mode": _REGISTRY,
    "columnNameOfCorruptRecord": _PERMISSIVE,
    "maxCorruptRatio": _PERMISSIVE,
    "includeSchemaId": _REGISTRY,
    "recursiveFieldMaxDepth": _REGISTRY,
    "autoRegisterSchemas": _REGISTRY,
    "schema.registry.bearer.auth.token": _REGISTRY,
    "schema.registry.ssl.key.password": {**_REGISTRY, "schema.registry.ssl.certificate.location": "/c.pem"},
    "schema.registry.timeout": _REGISTRY,
    "schema.registry.region": _AVRO,
    "schema.registry.registry.name": _AVRO,
    **{option.name: _ONCE for option in USED if option.field.startswith("exactly_once.")},
}


def test_an_entry_cannot_have_a_default_beside_that_of_its_field() -> None:
    with pytest.raises(ValueError, match="has a default beside the default of its field"):
        Option("x", "X.", field="fetch.max_wait_ms", default=5)


@pytest.mark.parametrize("field", ["fetch.max_wait", "fetches.max_wait_ms", "fetch"])
def test_an_entry_cannot_name_a_field_that_does_not_exist(field: str) -> None:
    with pytest.raises(ValueError, match=f"no value class has a field '{field}'"):
        Option("x", "X.", field=field)
