"""Spans of other processes: an exporter for them, which a test installs by the path of modules, and what it has kept.

The processes that Spark starts find it as they find any exporter: by the name in `OTEL_TRACES_EXPORTER`.
"""

from __future__ import annotations

import json
import os
import site
from pathlib import Path
from typing import Any

_EXPORTER = """
import os
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult


class KeptSpans(SpanExporter):
    def export(self, spans):
        text = "".join(span.to_json(indent=None) + chr(10) for span in spans)
        with open(os.environ["KEPT_SPANS"], "a") as file:
            file.write(text)
        return SpanExportResult.SUCCESS
"""


def variables_of_exporter(place: Path) -> dict[str, str]:
    """Install the exporter `kept` in a folder, and return the variables of a program that uses it."""
    folder = place / "exporter"
    metadata = folder / "kept_spans-1.dist-info"
    metadata.mkdir(parents=True)
    (folder / "kept_spans.py").write_text(_EXPORTER)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: kept-spans\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[opentelemetry_traces_exporter]\nkept = kept_spans:KeptSpans\n")
    path = [str(folder), *site.getsitepackages(), os.environ.get("PYTHONPATH", "")]
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "OTEL_TRACES_EXPORTER": "kept",
        "OTEL_SERVICE_NAME": "traced-program",
        "KEPT_SPANS": str(place / "spans.jsonl"),
    }


class KeptSpan:
    """One span that a process has exported.

    Attributes:
        name, kind, attributes, error: of the span; the error is the text of its status.
        trace_id, span_id: of the span, as in a `traceparent`.
        parent: the span id of its parent; None if it begins a trace.
        links: trace id and span id of each link.
    """

    def __init__(self, found: dict[str, Any]) -> None:
        self.name: str = found["name"]
        self.kind: str = found["kind"].rpartition(".")[2]
        self.attributes: dict[str, Any] = found["attributes"]
        self.error: str = found["status"].get("description", "")
        self.trace_id, self.span_id = self._ids(found["context"])
        self.parent = None if found["parent_id"] is None else found["parent_id"].removeprefix("0x")
        self.links = [self._ids(link["context"]) for link in found["links"]]

    def __repr__(self) -> str:
        return f"{self.name} {self.trace_id[:6]}/{self.span_id[:6]} {self.links} {self.error} {self.attributes}"

    @property
    def ids(self) -> tuple[str, str]:
        """Trace id and span id."""
        return self.trace_id, self.span_id

    @staticmethod
    def _ids(context: dict[str, str]) -> tuple[str, str]:
        return context["trace_id"].removeprefix("0x"), context["span_id"].removeprefix("0x")


def kept_spans(place: Path) -> list[KeptSpan]:
    """Return all spans that processes with the exporter of a folder have exported."""
    path = place / "spans.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [KeptSpan(json.loads(line)) for line in lines]
