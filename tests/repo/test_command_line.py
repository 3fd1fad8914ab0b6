"""All commands of the program look alike, and docs/command-line.md has them."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType
from typing import Any

from kit.pointers import REPO

CONNECTION = {
    "--bootstrap-servers": "PYSPARK_KAFKA_BOOTSTRAP_SERVERS",
    "--config": "PYSPARK_KAFKA_CONFIG",
    "--options": "PYSPARK_KAFKA_OPTIONS",
    "-o": None,
}
# They print no data, or nothing but the name of a file.
WITHOUT_JSON = {"demo", "report", "transactions abort", "transactions resolve", "version"}


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


def test_command_that_asks_brokers_takes_every_option_for_a_connection() -> None:
    helps = {opt: options_of("check")[opt].help for opt in CONNECTION}
    found = []
    for name in COMMANDS:
        options = options_of(name)
        if options.keys() & CONNECTION.keys():
            found += [f"{name}: lacks {opt}" for opt in CONNECTION.keys() - options.keys()]
            there = CONNECTION.keys() & options.keys()
            found += [f"{name}: variable of {opt}" for opt in there if options[opt].envvar != CONNECTION[opt]]
            found += [f"{name}: help of {opt}" for opt in there if options[opt].help != helps[opt]]
    assert not found, "\n".join(found)


def test_command_with_data_prints_json_on_request() -> None:
    options = {name: options_of(name).get("--json") for name in COMMANDS.keys() - WITHOUT_JSON}
    found = [name for name, json in options.items() if not json or json.help != "Print JSON, for programs."]
    assert not found, "\n".join(found)


def test_help_of_a_command_and_of_its_options_is_sentences() -> None:
    found = [
        f"{name}: {text}"
        for name, command in COMMANDS.items()
        for text in (command.help, *(parameter.help for parameter in command.params))
        if not re.match(r"[A-Z][^\n]*", text or "") or text.rstrip()[-1] != "."
    ]
    assert not found, "\n".join(found)
