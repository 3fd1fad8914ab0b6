"""ARCHITECTURE.md answers a newcomer's first questions, maps every folder, and names what holds each invariant."""

from __future__ import annotations

import configparser
import importlib.util
import re

import pytest

from kit.pointers import REPO, has_symbol, locate
from pyspark_kafka.records.abort_filter import AbortFilter

PAGE = REPO / "ARCHITECTURE.md"
TEXT = PAGE.read_text()
PACKAGE = REPO / "src" / "pyspark_kafka"

# A question, and where its answer stands: in a row of the table "Where is it?" these paths and names must be.
QUESTIONS = {
    "Why is a fetch retried?": [("client/retry.py", "decide_fetch")],
    "Where is the CRC checked?": [("records/batch_header.py", "HeaderWalk")],
    "What does a new option touch?": [
        ("options/values/read.py", "StreamReadOptions"),
        ("options/catalogue/spark.py", "SPARK_OPTIONS"),
        ("options/catalogue/kafka_used.py", "USED_PROPERTIES"),
    ],
    "Who decides that a batch is committed?": [
        ("sink/commit_marker.py", "judge"),
        ("sink/driver/publisher.py", "Publisher.publish"),
    ],
    "Where is an idle connection closed?": [
        ("client/idle_pool.py", "IdlePool"),
        ("client/cluster/broker_connections.py", "Connections"),
    ],
    "Where is a password proved to a broker?": [("client/login/scram.py", "ScramMechanism")],
    "How does a bad record become a dead letter?": [("spark/dead_letters/letters.py", "dead_letters")],
    "Who writes a fork of a checkpoint?": [("operations/checkpoints/forking/apply.py", "apply_fork")],
    "Where do the numbers in Prometheus come from?": [("spark/metrics/export/prometheus.py", "KafkaCollector")],
    "Which test fails if the abort filter is wrong?": [
        (
            "tests/unit/records/test_abort_filter.py",
            "test_aborted_records_are_hidden_and_committed_ones_are_not",
        ),
        ("records/abort_filter.py", "AbortFilter"),
    ],
}


def sections() -> dict[str, str]:
    """Return the sections of the folders by their headings."""
    folders = TEXT.partition("\n## The folders\n")[2].partition("\n## ")[0]
    parts = re.split(r"^### (.+)$", folders, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


MAPPED = {heading: text for heading, text in sections().items() if "`" in heading}


def test_questions_are_answered_with_files_and_names_that_exist() -> None:
    for question, answers in QUESTIONS.items():
        row = next((line for line in TEXT.splitlines() if line.startswith(f"| {question} |")), "")
        for path, symbol in answers:
            assert has_symbol(path, symbol), (path, symbol)
            assert f"`{path}` `{symbol}`" in row, question


@pytest.mark.parametrize("hidden", [True, False], ids=["everything hidden", "nothing hidden"])
def test_the_test_of_the_abort_filter_fails_if_the_filter_is_wrong(
    hidden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, test = QUESTIONS["Which test fails if the abort filter is wrong?"][0]
    spec = importlib.util.spec_from_file_location("test_of_the_abort_filter", REPO / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(AbortFilter, "hides", lambda *_: hidden)
    with pytest.raises(AssertionError):
        getattr(module, test)()


def test_every_folder_and_module_of_the_package_has_a_section() -> None:
    there = {f"{path.name}/" for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    there |= {path.name for path in PACKAGE.glob("*.py") if path.name != "__init__.py"}
    assert {name for heading in MAPPED for name in re.findall(r"`([^`]+)`", heading)} == there


def test_files_of_a_section_are_in_its_folder() -> None:
    gone = []
    for heading, text in MAPPED.items():
        roots = [PACKAGE / name for name in re.findall(r"`([^`]+)`", heading)]
        there = {path.name for root in roots for path in ([root] if root.suffix else root.rglob("*.py"))}
        gone += [f"{heading}: {name}" for name in set(re.findall(r"`(\w+\.py)`", text)) - there]
    assert not gone, "\n".join(gone)


def test_every_room_of_the_client_is_named() -> None:
    client = PACKAGE / "client"
    there = {f"{path.name}/" for path in client.iterdir() if (path / "__init__.py").exists()}
    there |= {path.name for path in client.glob("*.py") if path.name != "__init__.py"}
    table = re.findall(r"^\| ((?:`[^`|]+`(?:, )?)+) \|", MAPPED["`client/`"], re.MULTILINE)
    assert {name for cell in table for name in re.findall(r"`([^`]+)`", cell)} == there


def contracts() -> list[str]:
    """Return the names of the contracts of imports."""
    return re.findall(r"^\[importlinter:contract:([\w-]+)\]$", (REPO / ".importlinter").read_text(), re.MULTILINE)


def test_every_contract_holds_an_invariant_of_the_page() -> None:
    held_by = " ".join(text.partition("Held by:")[2] for text in MAPPED.values())
    assert [contract for contract in contracts() if f"`{contract}`" not in held_by] == []


def layers_of(contract: str) -> str:
    config = configparser.ConfigParser()
    config.read(REPO / ".importlinter")
    return config[f"importlinter:contract:{contract}"]["layers"]


def test_layers_on_the_page_are_those_that_are_checked() -> None:
    block = TEXT.partition("\n## The folders\n")[2].split("```")[1]
    on_page = [sorted(name.rstrip("/").removesuffix(".py") for name in line.split()) for line in block.splitlines()]
    checked = [sorted(re.findall(r"pyspark_kafka\.(\w+)", line)) for line in layers_of("layers").splitlines()]
    assert [names for names in on_page if names] == [names for names in checked if names]


def test_rooms_of_the_client_are_in_the_order_that_is_checked() -> None:
    rows = re.findall(r"^\| ((?:`[^`|]+`(?:, )?)+) \|", MAPPED["`client/`"], re.MULTILINE)
    on_page = [name for cell in rows for name in re.findall(r"`([^`]+)`", cell)]
    checked = re.findall(r"pyspark_kafka\.client\.(\w+)", layers_of("client-rooms"))
    assert [name.removesuffix("/").removesuffix(".py") for name in on_page] == checked


def test_a_section_has_an_invariant_and_what_holds_it() -> None:
    found = []
    for heading, text in MAPPED.items():
        held_by = text.partition("Held by:")[2]
        tests = re.findall(r"`(tests/[\w/]+\.py)`", held_by)
        named = re.findall(r"`([a-z-]+)`", held_by)
        found += [f"{heading}: has no invariant"] * ("**Invariant:**" not in text)
        found += [f"{heading}: nothing holds it"] * (not tests and not named)
        found += [f"{heading}: {path}" for path in tests if locate(path) is None]
        found += [f"{heading}: {contract}" for contract in named if contract not in contracts()]
    assert not found, "\n".join(found)


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


# Folders of spark/ that adapt another wing.
_OF_OTHERS = ("spark/metrics/", "spark/udfs/")


def wings() -> dict[str, tuple[set[str], int]]:
    """Return the folders and modules of each wing, and its number of lines on the page."""
    rows = re.findall(r"^\| \[([\w ]+)\]\(#[\w-]+\) \| ([^|]+) \| ([\d,]+) \|", TEXT, re.MULTILINE)
    return {name: (set(re.findall(r"`([^`]+)`", places)), int(lines.replace(",", ""))) for name, places, lines in rows}


def test_each_module_is_in_one_wing() -> None:
    places = [place.rstrip("/") for there, _ in wings().values() for place in there if place not in _OF_OTHERS]
    there = [path.name for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    assert sorted(places) == sorted(set(there) - {"__init__.py"})


def test_lines_of_a_wing_are_about_the_number_on_the_page() -> None:
    def lines_of(place: str) -> int:
        root = PACKAGE / place
        return sum(len(path.read_text().splitlines()) for path in ([root] if root.suffix else root.rglob("*.py")))

    found = {}
    of_others = sum(map(lines_of, _OF_OTHERS))
    for name, (places, on_page) in wings().items():
        counted = sum(map(lines_of, places))
        # The first wing names these folders as exceptions.
        counted -= 2 * of_others if "spark/" in places else 0
        if abs(counted - on_page) > 0.1 * on_page:
            found[name] = counted
    assert not found
