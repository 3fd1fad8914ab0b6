"""Where secrets are revealed, and that nothing which holds one shows it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from typing import TYPE_CHECKING, Any

import pytest

import pyspark_kafka.options as options_room
from kit.pointers import REPO
from pyspark_kafka.options import OPTIONS, PlainLogin, ScramLogin, Secret, TlsOptions

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = REPO / "src" / "pyspark_kafka"
# What hands secrets to security mechanisms, and what builds `reveal` itself.
ROOMS = ("client/login/", "client/tls/", "registry/")
OWN = ("options/values/secret.py", "options/values/secret_sources.py")
PLANTED = "Pl4ntedS3cret"


def uses_of(name: str, path: Path) -> list[int]:
    """Return the lines of a file that use an attribute of that name, called or not."""
    tree = ast.parse(path.read_text())
    return [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == name]


def test_secrets_are_revealed_in_login_tls_and_registry_alone() -> None:
    places = {
        str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") for name in ["reveal"] if uses_of(name, path)
    }
    assert {place for place in places if not place.startswith(ROOMS)} <= set(OWN)
    # All rooms do it: the search finds what it looks for.
    assert all(any(place.startswith(room) for place in places) for room in ROOMS)


def test_parts_of_a_secret_are_used_by_its_own_module_alone() -> None:
    for path in SOURCE.rglob("*.py"):
        if str(path.relative_to(SOURCE)) != "options/values/secret.py":
            text = path.read_text()
            assert "secret._" not in text, path
            assert "password._" not in text, path


def secret_fields(holder: type) -> set[str]:
    """Return the fields of a value class that are declared as a secret."""
    declared = {field.name: str(field.type) for field in dataclasses.fields(holder)}
    return {name for name, annotation in declared.items() if "Secret" in annotation}


def holders() -> list[type]:
    """Return the value classes with a field that is a secret."""
    classes = [each for _, each in inspect.getmembers(options_room, inspect.isclass) if dataclasses.is_dataclass(each)]
    return [each for each in classes if secret_fields(each)]


def test_holders_of_secrets_are_found() -> None:
    assert {PlainLogin, ScramLogin, TlsOptions} <= set(holders())


@pytest.mark.parametrize("holder", holders(), ids=lambda each: each.__name__)
def test_holder_of_secrets_does_not_show_them(holder: type) -> None:
    secret = secret_fields(holder)
    held: Any = holder(
        **{field.name: Secret(PLANTED) if field.name in secret else "x" for field in dataclasses.fields(holder)}
    )
    assert PLANTED not in f"{held} {held!r} {dataclasses.asdict(held)} {dataclasses.astuple(held)}"


# Certificates are kept out of logs because they are long.
SECRET_OPTIONS = sorted(
    option.name for option in OPTIONS if option.secret and option.parse is not None and "certificate" not in option.name
)


def page_settings() -> tuple[str, str]:
    """Return the two expressions that docs/secrets.md has users of Spark Connect and of PySpark classic set."""
    page = (REPO / "docs" / "secrets.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(spark\.conf\.set.*?)```", page, re.DOTALL)
    ((_, connect),) = re.findall(r'set\(\s*"(spark[a-z.]+)",\s*(.*?),\s*\)', block, re.DOTALL)
    (classic,) = re.findall(r"`spark\.sql\.redaction\.options\.regex` to `([^`]+)`", page)
    return ast.literal_eval(f"({connect})"), classic


@pytest.mark.parametrize("name", [*SECRET_OPTIONS, "schema.registry.url"])
def test_page_has_the_expressions_that_redact_every_secret_option(name: str) -> None:
    connect, classic = page_settings()
    # As a message of Protobuf is written as text.
    plan = f'options {{ key: "{name}" value: "a \\"{PLANTED}\\" b" }} options {{ key: "x" value: "shown" }}'
    redacted = re.sub(connect, "*", plan)
    assert PLANTED not in redacted
    assert "shown" in redacted
    # Spark's own expression also finds the word password in a JAAS configuration.
    usual = "secret|password|token"
    assert re.search(f"(?i){usual}|{classic.removeprefix('(?i)')}", f"{name} password=") is not None


def test_page_has_the_expressions_that_leave_other_options_as_they_are() -> None:
    connect, _ = page_settings()
    plan = (
        'options { key: "valueSchema" value: "id INT" } options { key: "schema.registry.ssl.ca.location" value: "/c" }'
    )
    assert re.sub(connect, "*", plan) == plan
