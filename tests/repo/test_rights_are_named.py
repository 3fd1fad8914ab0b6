"""Every error that is built from a code of a response says which rights the request needed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kit.source_tree import trees

BUILDERS = ("broker_error", "raise_for_code")
# Where no right can be missing: logging in comes before rights, and metadata leaves out what is hidden.
WITHOUT_RIGHTS = {
    "_client/client/login",
    # Its user may do everything.
    "testing/administration.py",
    # Whoever may log in may have tokens of their own.
    "_client/client/admin/tokens.py",
    "_client/client/net/handshake.py",
    "_client/client/cluster/metadata_request.py",
    # Codes of one partition beside its topic, which has one of its own.
    "_client/client/cluster/leaders.py",
    "_client/client/cluster/metadata.py",
    # Codes after which the write is repeated.
    "_client/client/produce/delivery/receiver.py",
}


def calls_without_rights(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of calls that take a code from a response and name no rights."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BUILDERS):
            continue
        literal = ast.unparse(node.args[0]).startswith("ErrorCode.")
        if not literal and not any(keyword.arg == "rights" for keyword in node.keywords):
            yield node.lineno


def test_errors_of_codes_name_the_rights_of_the_request() -> None:
    found: list[str] = []
    needed: set[str] = set()
    for name, tree in trees(containing="|".join(BUILDERS)):
        exceptions = {each for each in WITHOUT_RIGHTS if name == each or name.startswith(f"{each}/")}
        lines = list(calls_without_rights(tree))
        if exceptions and lines:
            needed |= exceptions
        else:
            found += [f"{name}:{line}: name the rights of the request" for line in lines]
    found += [f"{name}: an exception that is not needed" for name in sorted(WITHOUT_RIGHTS - needed)]
    assert not found, "\n".join(found)


def test_call_without_rights_is_found_unless_its_code_is_another_one() -> None:
    def lines(source: str) -> list[int]:
        return list(calls_without_rights(ast.parse(source)))

    assert lines('broker_error(response.error_code, "x")') == [1]
    assert lines('broker_error(response.error_code, "x", rights=())') == []
    assert lines('broker_error(ErrorCode.NOT_LEADER_OR_FOLLOWER, "x")') == []
