"""ARCHITECTURE.md answers a newcomer's first questions, has every storey, and names what holds each invariant."""

from __future__ import annotations

import ast
import configparser
import importlib.util
import re

import pytest

from kit.pointers import REPO, has_symbol, locate, with_whole_paths
from pyspark_kafka.records.abort_filter import AbortFilter

PAGE = REPO / "ARCHITECTURE.md"
TEXT = with_whole_paths(PAGE.read_text())
PACKAGE = REPO / "src" / "pyspark_kafka"
STOREYS = TEXT.partition("\n## Storeys\n")[2].split("```")[1].strip().splitlines()
# From how many lines on a module is named on the page or by its folder: a smaller one is found by its name.
LARGE = 150
INVARIANTS = re.findall(r"^\| ([^|]+) \| ([^|]+) \| (`[^|]+) \|$", TEXT.partition("\n## Invariants\n")[2], re.MULTILINE)

# A question, and where its answer stands: in a row of the table "Where is it?" these paths and names must be.
QUESTIONS = {
    "Why is a fetch retried?": [("_client/client/waiting/retry.py", "decide_fetch")],
    "Where is the CRC checked?": [("records/batch_header.py", "HeaderWalk")],
    "What does a new option touch?": [
        ("_client/options/values/read.py", "StreamReadOptions"),
        ("_client/options/catalogue/spark.py", "SPARK_OPTIONS"),
        ("_client/options/catalogue/kafka_used.py", "USED_PROPERTIES"),
    ],
    "Who decides that a batch is committed?": [
        ("_connector/sink/commit_marker.py", "judge_marker"),
        ("_connector/sink/driver/publisher.py", "Publisher.publish"),
    ],
    "Where is an idle connection closed?": [
        ("_client/client/reuse/idle_pool.py", "IdlePool"),
        ("_client/client/cluster/broker_connections.py", "Connections"),
    ],
    "Where is a password proved to a broker?": [("_client/client/login/scram.py", "ScramMechanism")],
    "How does a bad record become a dead letter?": [("_connector/spark/dead_letters/letters.py", "dead_letters")],
    "Who writes a fork of a checkpoint?": [("_ops/operations/checkpoints/forking/apply.py", "apply_fork")],
    "Where do the numbers in Prometheus come from?": [("_ops/metrics/export/families.py", "query_families")],
    "How is a transactional id made up?": [("_connector/sink/transactional_ids.py", "")],
    "Where does a timer fire, a window close?": [
        ("continuous/state/step_time.py", "StepTime.expired"),
        ("continuous/steps/windowed_rows.py", "WindowedRows.close"),
    ],
}


def test_questions_are_answered_with_files_and_names_that_exist() -> None:
    for question, answers in QUESTIONS.items():
        row = next((line for line in TEXT.splitlines() if line.startswith(f"| {question} |")), "")
        for path, symbol in answers:
            assert locate(path) is not None, path
            assert not symbol or has_symbol(path, symbol), (path, symbol)
            assert f"`{path}`" + (f" `{symbol}`" if symbol else "") in row, question


@pytest.mark.parametrize("hidden", [True, False], ids=["everything hidden", "nothing hidden"])
def test_the_test_of_the_abort_filter_fails_if_the_filter_is_wrong(
    hidden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "tests/unit/records/test_abort_filter.py"
    test = "test_aborted_records_are_hidden_and_committed_ones_are_not"
    spec = importlib.util.spec_from_file_location("test_of_the_abort_filter", REPO / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(AbortFilter, "hides", lambda *_: hidden)
    with pytest.raises(AssertionError):
        getattr(module, test)()


def test_every_folder_and_module_is_in_a_storey() -> None:
    named = {name for line in STOREYS for name in line.split()}
    there = {f"{path.name}/" for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    there |= {path.name for path in PACKAGE.glob("*.py") if path.name != "__init__.py"}
    assert named == there


def contracts() -> list[str]:
    """Return the names of the contracts of imports."""
    return re.findall(r"^\[importlinter:contract:([\w-]+)\]$", (REPO / ".importlinter").read_text(), re.MULTILINE)


def test_every_contract_holds_an_invariant_of_the_page() -> None:
    held_by = " ".join(row[2] for row in INVARIANTS)
    assert [contract for contract in contracts() if contract != "layers" and f"`{contract}`" not in held_by] == []


def layers_of(contract: str) -> str:
    config = configparser.ConfigParser()
    config.read(REPO / ".importlinter")
    return config[f"importlinter:contract:{contract}"]["layers"]


def test_storeys_on_the_page_are_those_that_are_checked() -> None:
    on_page = [sorted(name.rstrip("/").removesuffix(".py") for name in line.split()) for line in STOREYS]
    checked = [sorted(re.findall(r"pyspark_kafka\.(\w+)", line)) for line in layers_of("layers").splitlines()]
    assert on_page == [names for names in checked if names]


def test_an_invariant_is_of_a_folder_and_held_by_something() -> None:
    assert len(INVARIANTS) > 15
    found = []
    for room, _, held_by in INVARIANTS:
        found += [f"{room}: no folder" for name in re.findall(r"`([^`]+)`", room) if not (PACKAGE / name).is_dir()]
        names = re.findall(r"`([^`]+)`", held_by)
        found += [f"{room}: nothing holds it"] * (not names)
        tests = [name for name in names if name.startswith("tests/")]
        found += [f"{room}: {path}" for path in tests if locate(path) is None]
        found += [f"{room}: {name}" for name in names if name not in tests and name not in contracts()]
    assert not found, "\n".join(found)


def test_large_modules_are_named_on_the_map_or_by_their_folder() -> None:
    missing = []
    for path in PACKAGE.rglob("*.py"):
        lines = len(path.read_text().splitlines())
        if lines < LARGE or path.name == "__init__.py" or path.parent == PACKAGE:
            continue
        relative = str(path.relative_to(PACKAGE))
        docstring = ast.get_docstring(ast.parse((path.parent / "__init__.py").read_text())) or ""
        if f"`{relative}`" not in TEXT and not re.search(rf"\b{path.stem}\b", docstring):
            missing.append(f"{relative}: {lines} lines")
    assert not missing, "\n".join(sorted(missing))


def test_page_is_read_in_a_sitting() -> None:
    assert len(PAGE.read_bytes()) <= 16_000


def test_things_that_bite_name_an_owner_and_a_test_that_notices_a_change() -> None:
    chapter = (REPO / "DESIGN.md").read_text().partition("\n## Things that will bite you\n")[2].partition("\n## ")[0]
    entries = re.split(r"^- \*\*", chapter, flags=re.MULTILINE)[1:]
    assert len(entries) > 30
    for entry in entries:
        text = " ".join(entry.partition("\n\n")[0].split())
        found = re.search(r"Owner: `([\w/]+\.py)`.*? Noticed by: (.+)\.$", text)
        assert found is not None, text
        assert locate(found[1]) is not None, found[1]
        assert all(re.fullmatch(r"[RT]\d+|`tests/[\w/]+\.py`", part) for part in found[2].split(", ")), found[2]


def test_a_decision_has_its_context_alternatives_and_consequences_and_is_listed() -> None:
    decisions = sorted((REPO / "docs" / "decisions").glob("*.md"))
    assert decisions
    headings = {path.name: re.findall(r"^## (.+)$", path.read_text(), re.MULTILINE) for path in decisions}
    parts = ["Context", "Alternatives", "Decision", "Consequences"]
    assert {name: found for name, found in headings.items() if found != parts} == {}
    listed = (REPO / "DESIGN.md").read_text()
    assert [name for name in headings if f"(docs/decisions/{name})" not in listed] == []


def test_lines_of_a_part_are_about_the_number_on_the_page() -> None:
    rows = re.findall(r"^\| [^|`]+: ((?:`[^`]+`(?:, )?)+) \| ([\d,]+) \|", TEXT, re.MULTILINE)
    found = {}
    counted_once: list[str] = []
    for places, lines in rows:
        names = re.findall(r"`([^`]+)`", places)
        counted_once += names
        files = [path for name in names for path in (PACKAGE / name).rglob("*.py")]
        counted = sum(len(path.read_text().splitlines()) for path in files)
        if abs(counted - int(lines.replace(",", ""))) > 0.05 * counted:
            found[places] = counted
    assert not found
    # Each folder is in one part; doors and `_base/` are in none.
    tops = {name.partition("/")[0] for name in counted_once}
    assert len(counted_once) == len(set(counted_once))
    assert tops == {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__", "_base", "spark"}
