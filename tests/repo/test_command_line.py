"""All commands of the program look alike, and docs/command-line.md has them."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from rich.cells import cell_len
from rich.text import Text

from kit.pointers import REPO
from kit.programs.cli import invoke
from pyspark_kafka._ops.cli.common.outcome import ExitStatus

CONNECTION = {
    "--bootstrap-servers": "PYSPARK_KAFKA_BOOTSTRAP_SERVERS",
    "--config": "PYSPARK_KAFKA_CONFIG",
    "--options": "PYSPARK_KAFKA_OPTIONS",
    "-o": None,
}
# They print no data, or nothing but the name of a file.
WITHOUT_JSON = {"demo", "report", "topics create", "transactions abort", "transactions resolve", "version"}


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


def help_of(name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    return Text.from_ansi(invoke(*name.split(), "--help").output).plain


@pytest.mark.parametrize("name", ["", *sorted({name.split()[0] for name in COMMANDS if " " in name}), *COMMANDS])
def test_help_fits_80_columns_without_a_cut_word(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = help_of(name, monkeypatch)
    assert "Usage: " in shown
    assert "…" not in shown
    assert "<bool>" not in shown
    assert max(map(cell_len, shown.splitlines())) <= 80
    if name in COMMANDS:
        parameters = COMMANDS[name].params
        named = {word for each in parameters for word in (*each.opts, each.metavar or each.opts[0])}
        named |= {CONNECTION.get(opt) or opt for each in parameters for opt in each.opts}
        assert named <= set(re.split(r"[\s,│]+|\.(?=\s)", shown))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_the_connection_last_and_one_example(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = help_of(name, monkeypatch)
    panels = [title for title in re.findall(r"─ (\w+) ─", shown) if title != "Arguments"]
    opts = options_of(name)
    assert panels == ["Options", "Connection"] if "--config" in opts else ["Options"]
    last = {opt for opt, parameter in opts.items() if parameter.rich_help_panel == "Connection"}
    assert last == (CONNECTION.keys() | {"-b", "--option"} if "--config" in opts else set())
    assert [line.strip() for line in shown.splitlines() if "Example: " in line] == [COMMANDS[name].epilog]


class Begun(Exception):  # noqa: N818 - not an error
    """The work of a command begins: its arguments are right."""


@pytest.mark.parametrize("name", COMMANDS)
def test_example_of_a_command_is_one_that_the_program_accepts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(*_: object, **__: object) -> None:
        raise Begun

    for module in [each for path, each in sys.modules.items() if path.startswith("pyspark_kafka._ops.cli.")]:
        if hasattr(module, "run_command"):
            monkeypatch.setattr(module, "run_command", begin)
    root: Any = typer.main.get_command(TOOL.app)
    for command in (root.commands["demo"], root.commands["version"]):
        # They have no arguments to check.
        command.callback = begin
    program, *words = shlex.split(COMMANDS[name].epilog.removeprefix("Example: "))
    assert [program, *words[: name.count(" ") + 1]] == ["pyspark-kafka", *name.split()]
    with pytest.raises(Begun):
        root.main(words, prog_name=program, standalone_mode=False)


@pytest.mark.parametrize("page", ["command-line.md", "operations.md"])
def test_page_has_every_exit_status(page: str) -> None:
    table = re.search(r"\| (?:Exit status|Status) \| Meaning \|\n(?:\|.*\n)+", (REPO / "docs" / page).read_text())
    assert table is not None
    assert re.findall(r"(?m)^\| (\d+) \|", table[0]) == [str(int(status)) for status in ExitStatus]


def texts() -> list[Path]:
    """Return the pages, forms, examples and modules that may name a command."""
    found = [*REPO.glob("*.md"), *(REPO / ".github").rglob("*"), *(REPO / "docs").rglob("*.md")]
    found += [path for folder in ("src", "deploy", "examples", "monitoring") for path in (REPO / folder).rglob("*")]
    return [path for path in found if path.suffix in {".md", ".yml", ".yaml", ".py", ".sh", ".json"} and path.is_file()]


def named_commands(path: Path) -> Iterator[str]:
    """Yield the words behind each call of the program: in code, or behind Run; elsewhere it names the product."""
    text = path.read_text()
    if path.suffix == ".md":
        text = "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))
    joined = re.sub(r"\\\n\s*|\"\n\s*f?\"", " ", text)
    for call in re.finditer(
        r"(?m)(?:`|^ *(?:\$ )?|\b[Rr]un |bin/|with: )pyspark-kafka ((?:[a-z][a-z-]*|--?[a-z][\w-]*)[^`\n\"|&;#]*)",
        joined,
    ):
        yield call[1]


def fault_of(words: str) -> str | None:
    """Return what the program lacks of a call, or None."""
    parts = words.split()
    names = [part for part in parts[:3] if re.fullmatch("[a-z][a-z-]*", part)]
    groups = {name.split()[0] for name in COMMANDS}
    if names and names[0] not in groups:
        return f"no command {names[0]}"
    command = next((" ".join(names[:n]) for n in (3, 2, 1) if " ".join(names[:n]) in COMMANDS), None)
    if command is None:
        # A group, as in "pyspark-kafka checkpoint --help".
        known = {name.split()[1] for name in COMMANDS if name.split()[0] in names[:1] and " " in name}
        return None if len(names) < 2 or names[1] in known else f"no command {' '.join(names[:2])}"
    known = options_of(command).keys() | {"--help"}
    lacks = [opt for opt in re.findall(r"(?<!\S)--[a-z][\w-]*", words) if opt not in known]
    return f"{command} has no {lacks}" if lacks else None


def test_commands_that_texts_name_exist_with_their_options() -> None:
    calls = [(path, words) for path in texts() for words in named_commands(path)]
    assert len(calls) > 100
    found = [f"{path.relative_to(REPO)}: {words!r}: {fault}" for path, words in calls if (fault := fault_of(words))]
    assert not found, "\n".join(found)
