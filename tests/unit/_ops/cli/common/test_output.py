"""Rows as a table, as blocks of lines, and as lines."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console
from rich.text import Text

from pyspark_kafka._ops.cli.common import output
from pyspark_kafka._ops.cli.common.output import TableColumn, print_rows, say, to_lines, warn

COLUMNS = (TableColumn("topic", style="bold"), TableColumn("bytes", right=True), TableColumn("note"))
ROWS = (("orders", "7", ""), ("日本", "1234", "two\nlines"))


def shown(width: int = 200, *, terminal: bool = True, encoding: str = "utf-8") -> Console:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return Console(file=file, width=width, force_terminal=terminal, color_system=None, legacy_windows=False)


def text_of(console: Console) -> str:
    file = console.file
    assert isinstance(file, io.TextIOWrapper)
    file.seek(0)
    return file.read()


def test_lines_are_aligned_and_every_cell_has_a_place() -> None:
    assert to_lines(COLUMNS, ROWS) == [
        "topic   bytes  note",
        "orders      7  -",
        "日本     1234  two; lines",
    ]


def test_pipe_gets_lines_however_narrow_it_says_it_is() -> None:
    console = shown(10, terminal=False)
    print_rows(COLUMNS, ROWS, console)
    assert text_of(console).splitlines() == to_lines(COLUMNS, ROWS)


def test_terminal_gets_a_table() -> None:
    console = shown()
    print_rows(COLUMNS, ROWS, console)
    lines = [line.rstrip() for line in text_of(console).splitlines() if line.strip()]
    assert [line.split() for line in lines if "─" not in line] == [
        ["topic", "bytes", "note"],
        ["orders", "7"],
        ["日本", "1234", "two"],
        ["lines"],
    ]
    assert any("─" in line for line in lines)


def test_terminal_without_unicode_gets_a_table_of_ascii() -> None:
    console = shown(encoding="ascii")
    print_rows(COLUMNS, ROWS[:1], console)
    assert text_of(console).isascii()


def test_narrow_terminal_gets_blocks_whose_cells_can_be_copied() -> None:
    console = shown(14)
    print_rows(COLUMNS, [("a-long-name-of-a-topic", "7", "x")], console)
    lines = [line.rstrip() for line in text_of(console).splitlines()]
    assert lines == ["a-long-name-of-a-topic", "  bytes  7", "  note   x"]


@pytest.mark.parametrize("terminal", [True, False])
def test_cells_cannot_drive_a_terminal(terminal: bool) -> None:
    console = shown(terminal=terminal)
    print_rows(COLUMNS, [("\x1b]0;x\x07", "\r1", "[red]\x1b[31m")], console)
    text = text_of(console)
    assert not {"\x1b", "\x07", "\r"} & set(text)
    assert "\\x1b]0;x\\x07" in text
    assert "[red]" in text


def test_terminal_gets_lines_if_there_are_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_MAX_TABLE_ROWS", 1)
    console = shown()
    print_rows(COLUMNS, ROWS, console)
    assert text_of(console).splitlines() == to_lines(COLUMNS, ROWS)


SENTENCE = "The position of orders-0 is shown; the query has read everything of the log."


@pytest.mark.parametrize("tell", [say, warn])
def test_sentence_breaks_between_words_on_a_terminal_and_nowhere_in_a_pipe(
    tell: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "32")
    tell(SENTENCE)
    told = capsys.readouterr()
    assert f"{told.out}{told.err}" == f"{SENTENCE}\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    tell(SENTENCE)
    told = capsys.readouterr()
    plain = Text.from_ansi(f"{told.out}{told.err}").plain.rstrip("\n")
    assert plain.count("\n") == 2
    assert plain.split() == SENTENCE.split()
