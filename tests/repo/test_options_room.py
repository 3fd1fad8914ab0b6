"""Options from outside: one import path, and a consumer of every field; the checklist of CONTRIBUTING.md is true."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from kit.pointers import REPO
from kit.source_tree import PACKAGE, places, python_files, text_of
from pyspark_kafka._client.options import OPTIONS
from pyspark_kafka._client.options.values import VALUE_CLASSES, default_of

# Import-linter checks src/; these are the tests of the rooms.
ROOMS_TESTED = (PACKAGE / "_client" / "options", REPO / "tests" / "unit" / "_client" / "options", Path(__file__))

# Accepted for compatibility and ignored.
WITHOUT_CONSUMER = {"group_id_prefix"}


def test_option_values_have_one_import_path() -> None:
    rooms = re.compile(r"pyspark_kafka\.options\.(?:values|catalogue|parse|resolve)\b")
    found = [
        place
        for path in python_files()
        if not any(path == room or room in path.parents for room in ROOMS_TESTED)
        for place in places(rooms, path)
    ]
    assert not found, "\n".join(found)


def test_a_field_of_an_option_has_a_consumer() -> None:
    names = {field.name for value_class in VALUE_CLASSES.values() for field in fields(value_class)}
    read = {
        name
        for path in python_files(PACKAGE)
        if PACKAGE / "_client" / "options" not in path.parents or "values" in path.parts
        for name in re.findall(r"(?<=\w)\.(\w+)", text_of(path))
    }
    assert sorted(names - read) == sorted(WITHOUT_CONSUMER)


def test_no_room_of_options_has_more_than_a_dozen_modules() -> None:
    rooms = [
        path for path in (PACKAGE / "_client" / "options").rglob("*") if path.is_dir() and path.name != "__pycache__"
    ]
    assert {room.name for room in rooms} == {"values", "catalogue", "parse", "resolve"}
    assert [room.name for room in (PACKAGE / "_client" / "options", *rooms) if len(list(room.glob("*.py"))) > 12] == []


def test_the_checklist_for_an_option_names_places_that_exist() -> None:
    checklist = (REPO / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Add an option")[2]
    checklist = checklist.partition("\n## ")[0]
    paths = re.findall(r"`((?:src|tests|docs)/[\w./]+)`", checklist)
    assert len(paths) >= 6
    assert [path for path in paths if not (REPO / path).exists()] == []
    catalogue = PACKAGE / "_client" / "options" / "catalogue"
    assert [name for name in re.findall(r"`(\w+\.py)`", checklist) if not (catalogue / name).is_file()] == []


def test_the_example_of_the_checklist_is_in_the_three_places_it_names() -> None:
    checklist = (REPO / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Add an option")[2]
    option = OPTIONS["maxOffsetsPerTrigger"]
    assert option.name in checklist
    assert f'field="{option.field}"' in checklist
    assert default_of(option.field) is option.default
    name = option.field.partition(".")[2]
    value_class, consumer = re.findall(r"Example:[^`]*(?:`\w+\.\w+` in )?`(src/[\w./]+)`", checklist)
    assert f"    {name}: " in (REPO / value_class).read_text(encoding="utf-8")
    assert f".{name}" in (REPO / consumer).read_text(encoding="utf-8")
