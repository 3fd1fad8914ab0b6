"""Lines of a check, on a terminal and elsewhere."""

from __future__ import annotations

import io
import json

from rich.console import Console

from pyspark_kafka._ops.cli.check.lines import Lines, summary, to_lines, to_text
from pyspark_kafka._ops.diagnosis import Diagnosis, Finding, FindingStatus

FAILED = Finding("tls", FindingStatus.FAILED, "It\x1b[31m does not work.", "Set kafka.security.protocol to SSL.")
FINE = Finding("tcp", FindingStatus.OK, "It works.", where="worker w")


def test_a_finding_is_one_line_and_its_remedy_another() -> None:
    assert [line.plain for line in to_lines(FAILED)] == [
        "✗ tls         It\\x1b[31m does not work.",
        "              → Set kafka.security.protocol to SSL.",
    ]
    assert [line.plain for line in to_lines(FINE)] == ["✓ tcp         It works."]


def test_marks_are_plain_where_the_encoding_has_no_others() -> None:
    assert [line.plain[:2] for line in to_lines(FAILED, ascii_only=True)] == ["XX", "  "]
    encoded = "\n".join(line.plain for line in to_lines(FAILED, ascii_only=True)).encode("ascii")
    assert b"-> Set" in encoded


def test_lines_appear_as_they_are_found_under_the_machine_they_are_about() -> None:
    out = io.StringIO()
    with Lines(Console(file=out, width=60)) as lines:
        lines.show("Connecting", None)
        lines.show("", FAILED)
        lines.show("", FINE)
        lines.show("", FINE)
    shown = [line for line in out.getvalue().splitlines() if not line.startswith(("XX", "✗", " "))]
    assert shown[0] == "driver"
    assert shown[1] == "worker w"
    assert len(shown) == 4


def test_a_terminal_shows_what_is_judged_now() -> None:
    out = io.StringIO()
    with Lines(Console(file=out, force_terminal=True, width=60)) as lines:
        lines.show("Connecting", None)
    assert "Connecting …" in out.getvalue() or "Starting …" in out.getvalue()


def test_summary_counts_what_a_user_has_to_look_at() -> None:
    assert summary(Diagnosis((FINE,), 1_250)) == "Everything works (1.2 s)."
    warned = Finding("options", FindingStatus.WARNING, "Hm.")
    assert summary(Diagnosis((FINE, warned), 0)) == "Everything works (1 to watch, 0.0 s)."
    assert summary(Diagnosis((FAILED, warned), 0)) == "Something does not work: 1 failed, 1 to watch, 0.0 s."


def test_json_is_ascii_so_that_every_terminal_takes_it() -> None:
    text = to_text(Diagnosis((Finding("tcp", FindingStatus.OK, "→"),)))
    assert text.isascii()
    assert json.loads(text)["findings"][0]["text"] == "→"
