"""The house of tests: where helpers are found, what unit tests may not do, and which module a test file is about."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

import kit
from kit.pointers import REPO
from kit.source_tree import PACKAGE, trees

TESTS = REPO / "tests"
KIT, UNIT = TESTS / "kit", TESTS / "unit"
_IN_TABLE = re.compile(r"^\|[^|]+\|(.+)\|$", re.MULTILINE)
# Helpers that open sockets; tests that need one are in tests/protocol, tests/contract or tests/integration.
SERVERS = ("kit.brokers", "kit.fakes.black_hole", "kit.fakes.tcp_cluster", "socket")
# Rooms of src/pyspark_kafka whose unit tests mirror its modules, and files there that are about no single module.
MIRRORED: dict[str, set[str]] = {
    "checkpoint": {"test_checkpoint.py"},
    "_ops/cli": set(),
    "_ops/cli/check": set(),
    "_ops/cli/checkpoints": set(),
    "_ops/cli/common": set(),
    "_ops/cli/lag": set(),
    "_ops/cli/tail": set(),
    "_client/client": set(),
    "_client/client/cluster": set(),
    "_client/client/fetch": set(),
    "_client/client/fetch/session": set(),
    "_client/client/net": set(),
    "_client/client/queries": set(),
    "_client/client/produce": set(),
    "_client/client/produce/batches": set(),
    "_client/client/transactions": set(),
    "_client/client/wire": set(),
    "_ops/diagnosis": set(),
    "_ops/diagnosis/steps": set(),
    "_base/offsets": set(),
    "_ops/lineage": {"test_costs.py"},
    "_ops/lineage/plans": set(),
    "_ops/operations": set(),
    "_ops/operations/checkpoints": set(),
    "_ops/operations/checkpoints/verify": set(),
    "_ops/operations/lag": set(),
    "_ops/operations/reports": set(),
    "_ops/operations/tail": set(),
    "_client/options/catalogue": set(),
    "_client/options/parse": set(),
    "_client/options/resolve": set(),
    "_client/options/values": set(),
    "_connector/planning": set(),
    # Whole responses and batches through all of the codec: rules by number, recorded bytes, the page of the docs.
    "records": {
        "test_fetch_rules.py",
        "test_golden_batches.py",
        "test_golden_fetches.py",
        "test_records_doc.py",
    },
    "_typed/registry": set(),
    "_connector/sink/driver": set(),
    "_connector/sink/executor": set(),
    "_connector/source/driver": set(),
    "_connector/source/executor": set(),
    "_connector/spark": set(),
    "_connector/spark/processes": set(),
    "testing": set(),
}


def rows_of_the_table() -> set[str]:
    """Return the files and folders that the docstring of the kit names."""
    return {path for row in _IN_TABLE.findall(kit.__doc__ or "") for path in re.findall(r"`([^`]+)`", row)}


def test_table_of_the_kit_names_every_file() -> None:
    named = rows_of_the_table()
    files = {str(path.relative_to(KIT)) for path in KIT.rglob("*.py") if path.name != "__init__.py"}
    folders = {path for path in named if path.endswith("/")}
    missing = {path for path in files - named if not any(path.startswith(folder) for folder in folders)}
    assert missing == set(), "helpers that the table of tests/kit/__init__.py does not name"


def test_table_of_the_kit_names_nothing_that_is_not_there() -> None:
    assert {path for path in rows_of_the_table() if not (KIT / path).exists()} == set()


def imports_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the modules that a file imports, also inside of functions, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def test_unit_tests_import_no_servers_and_no_sockets() -> None:
    last_words = "|".join({server.rpartition(".")[2] for server in SERVERS})
    found = [
        f"unit/{file}:{line}: {name}"
        for file, tree in trees(UNIT, containing=last_words)
        # It makes the attempt an error.
        if file != "conftest.py"
        for line, name in imports_of(tree)
        if any(name == server or name.startswith(f"{server}.") for server in SERVERS)
    ]
    assert not found, "\n".join(found)


def test_unit_tests_of_a_room_are_named_after_its_modules() -> None:
    """`test_<module>.py`, or `test_<module>_<topic>.py`."""
    stray = []
    for room, exceptions in MIRRORED.items():
        modules = {path.stem.lstrip("_") for path in (PACKAGE / room).glob("*.py")}
        stray += [
            f"unit/{room}/{path.name}"
            for path in sorted((UNIT / room).glob("test_*.py"))
            if path.name not in exceptions
            and not any(path.stem == f"test_{module}" or path.stem.startswith(f"test_{module}_") for module in modules)
        ]
    assert not stray, "\n".join(stray)


def test_exceptions_of_a_mirrored_room_exist() -> None:
    gone = [f"unit/{room}/{name}" for room in MIRRORED for name in MIRRORED[room] if not (UNIT / room / name).is_file()]
    assert not gone, "\n".join(gone)


@pytest.mark.parametrize("data", [b"\x1f\x8b"])
def test_case_of_bytes_is_named_by_its_argument(request: pytest.FixtureRequest, data: bytes) -> None:
    assert data
    assert request.node.name.endswith("[data]")
