"""All commands of the program look alike, and docs/command-line.md has them."""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING, Any

import pytest

from kit.pointers import REPO

if TYPE_CHECKING:
    from types import ModuleType

CONNECTION = {
    "--bootstrap-servers": "PYSPARK_KAFKA_BOOTSTRAP_SERVERS",
    "--config": "PYSPARK_KAFKA_CONFIG",
    "--options": "PYSPARK_KAFKA_OPTIONS",
    "-o": None,
}
# They print no data, or nothing but the name of a file.
WITHOUT_JSON = {"demo", "report", "transactions abort", "version"}


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("command_line", REPO / "tools" / "command_line.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = load()
COMMANDS: dict[str, Any] = dict(TOOL.commands())


def options_of(name: str) -> dict[str, Any]:
    return {opt: parameter for parameter in COMMANDS[name].params for opt in parameter.opts}


def test_page_has_all_commands() -> None:
    file = REPO / "docs" / "command-line.md"
    assert file.read_text() == TOOL.page(), ".venv/bin/python tools/command_line.py > docs/command-line.md"


def test_findings_are_of_commands_that_exist() -> None:
    assert set(TOOL.FINDINGS) <= set(COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_command_that_asks_brokers_takes_every_option_for_a_connection(name: str) -> None:
    options = options_of(name)
    if not options.keys() & CONNECTION.keys():
        return
    assert {opt: options[opt].envvar for opt in CONNECTION} == CONNECTION
    reference = options_of("check")
    assert {opt: options[opt].help for opt in CONNECTION} == {opt: reference[opt].help for opt in CONNECTION}


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - WITHOUT_JSON))
def test_command_with_data_prints_json_on_request(name: str) -> None:
    assert options_of(name)["--json"].help == "Print JSON, for programs."


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_of_a_command_and_of_its_options_is_sentences(name: str) -> None:
    command = COMMANDS[name]
    texts = [command.help, *(parameter.help for parameter in command.params)]
    assert [text for text in texts if not re.match(r"[A-Z][^\n]*", text or "") or text.rstrip()[-1] != "."] == []
