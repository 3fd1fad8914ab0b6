"""Where secrets are revealed, and that nothing which holds one shows it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from typing import Any

import pyspark_kafka._client.options as options_room
from kit.pointers import REPO
from kit.source_tree import PACKAGE, places, python_files, trees
from pyspark_kafka._client.options import OPTIONS, PlainLogin, ScramLogin, Secret, TlsOptions

# What hands secrets to security mechanisms, and what builds `reveal` itself.
ROOMS = ("_client/client/login/", "_client/client/tls/", "_typed/registry/")
OWN = ("_client/options/values/secret.py",)
PLANTED = "Pl4ntedS3cret"


def test_secrets_are_revealed_in_login_tls_and_registry_alone() -> None:
    # Called or not.
    uses = [
        f"{name}:{node.lineno}"
        for name, tree in trees(containing="reveal")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "reveal"
    ]
    others = [use for use in uses if not use.startswith(ROOMS) and use.partition(":")[0] not in OWN]
    assert not others, "\n".join(others)
    # All rooms do it: the search finds what it looks for.
    assert all(any(use.startswith(room) for use in uses) for room in ROOMS)


def test_parts_of_a_secret_are_used_by_its_own_module_alone() -> None:
    parts = re.compile(r"(?:secret|password)\._")
    files = [path for path in python_files(PACKAGE) if path != PACKAGE / "_client" / "options" / "values" / "secret.py"]
    found = [place for path in files for place in places(parts, path)]
    assert not found, "\n".join(found)


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


def shows_its_secrets(holder: type) -> bool:
    """Whether a value class shows a planted secret in one of its forms as text."""
    secret = secret_fields(holder)
    held: Any = holder(
        **{field.name: Secret(PLANTED) if field.name in secret else "x" for field in dataclasses.fields(holder)}
    )
    return PLANTED in f"{held} {held!r} {dataclasses.asdict(held)} {dataclasses.astuple(held)}"


def test_holders_of_secrets_do_not_show_them() -> None:
    found = [holder.__name__ for holder in holders() if shows_its_secrets(holder)]
    assert not found, "\n".join(found)


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


def test_page_has_the_expressions_that_redact_every_secret_option() -> None:
    connect, classic = page_settings()
    for name in (*SECRET_OPTIONS, "schema.registry.url"):
        # As a message of Protobuf is written as text.
        plan = f'options {{ key: "{name}" value: "a \\"{PLANTED}\\" b" }} options {{ key: "x" value: "shown" }}'
        redacted = re.sub(connect, "*", plan)
        assert PLANTED not in redacted, name
        assert "shown" in redacted, name
        # Spark's own expression also finds the word password in a JAAS configuration.
        usual = "secret|password|token"
        assert re.search(f"(?i){usual}|{classic.removeprefix('(?i)')}", f"{name} password=") is not None, name


def test_page_has_the_expressions_that_leave_other_options_as_they_are() -> None:
    connect, _ = page_settings()
    plan = (
        'options { key: "valueSchema" value: "id INT" } options { key: "schema.registry.ssl.ca.location" value: "/c" }'
    )
    assert re.sub(connect, "*", plan) == plan
