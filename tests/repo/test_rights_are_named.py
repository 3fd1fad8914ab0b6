"""Every error that is built from a code of a response says which rights the request needed."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SRC = Path(__file__).parents[2] / "src" / "pyspark_kafka"
BUILDERS = ("broker_error", "raise_for_code")
# Where no right can be missing: logging in comes before rights, and metadata leaves out what is hidden.
WITHOUT_RIGHTS = {
    "client/login",
    # Whoever may log in may have tokens of their own.
    "client/admin/tokens.py",
    "client/net/handshake.py",
    "client/cluster/metadata_request.py",
    # Codes of one partition beside its topic, which has one of its own.
    "client/cluster/leaders.py",
    "client/produce/leaders.py",
    # Codes after which the write is repeated.
    "client/produce/delivery/receiver.py",
}


def calls_without_rights(source: str) -> Iterator[int]:
    """Yield the lines of calls that take a code from a response and name no rights."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BUILDERS):
            continue
        literal = ast.unparse(node.args[0]).startswith("ErrorCode.")
        if not literal and not any(keyword.arg == "rights" for keyword in node.keywords):
            yield node.lineno


@pytest.mark.parametrize("path", sorted(SRC.rglob("*.py")), ids=lambda path: str(path.relative_to(SRC)))
def test_errors_of_codes_name_the_rights_of_the_request(path: Path) -> None:
    name = path.relative_to(SRC).as_posix()
    if not any(name == each or name.startswith(f"{each}/") for each in WITHOUT_RIGHTS):
        assert list(calls_without_rights(path.read_text())) == []


@pytest.mark.parametrize("name", sorted(WITHOUT_RIGHTS))
def test_exception_is_needed(name: str) -> None:
    path = SRC / name
    files = path.rglob("*.py") if path.is_dir() else [path]
    assert any(list(calls_without_rights(each.read_text())) for each in files)


def test_call_without_rights_is_found_unless_its_code_is_another_one() -> None:
    assert list(calls_without_rights('broker_error(response.error_code, "x")')) == [1]
    assert list(calls_without_rights('broker_error(response.error_code, "x", rights=())')) == []
    assert list(calls_without_rights('broker_error(ErrorCode.NOT_LEADER_OR_FOLLOWER, "x")')) == []
