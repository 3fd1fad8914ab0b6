"""The dashboard and the rules of monitoring/: they parse, and each name in them is in a scrape."""

from __future__ import annotations

import importlib
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import prometheus_client
import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from kit.pointers import REPO
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._ops.metrics.export.exporter import Exporter
from pyspark_kafka._ops.metrics.export.prometheus import KafkaCollector
from pyspark_kafka._ops.metrics.store import MetricsStore
from pyspark_kafka._ops.metrics.values import GroupTime, QueryMetrics, SourceMetrics, StateMetrics

DASHBOARD = json.loads((REPO / "monitoring" / "dashboard.json").read_text())
RULES = yaml.safe_load((REPO / "monitoring" / "alerts.yml").read_text())
PAGE = (REPO / "docs" / "monitoring.md").read_text()
ALERTS: list[dict[str, Any]] = [rule for group in RULES["groups"] for rule in group["rules"]]
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
QUERIES = [
    *(pytest.param(rule["expr"], id=rule["alert"]) for rule in ALERTS),
    *(
        pytest.param(target["expr"], id=f"{panel['title']} {target['refId']}")
        for panel in PANELS
        for target in panel.get("targets", ())
    ),
]
# What Prometheus adds when it scrapes, and what a histogram has.
_ADDED = {"instance", "job", "le"}
_NAME = re.compile(r"\bpyspark_kafka_\w+")
_VARIABLES = {"$__rate_interval": "5m", "$instance": ".*", "$query": ".*"}


@pytest.fixture(scope="module")
def scrape() -> dict[str, set[str]]:
    """The names of all samples, each with those of its labels, of an exposition in which no figure is missing."""
    store = MetricsStore()
    source = SourceMetrics(0, ("t",), 5, 3, 3, 3.0, {TopicPartition("t", 0): 3})
    behind = GroupTime("t", "0", 7.0)
    step = StateMetrics(0, "stateStoreSave", 1, 1, 1, 1, 2.0, 99, 1, behind, behind)
    store.put(
        QueryMetrics(
            "id", "r", "q", 0, "", 5, (source,), duration_ms=200, phases_ms={"addBatch": 150}, num_output_rows=5,
            latency_p50_ms=1.0, latency_p99_ms=2.0, states=(step,), watermark_s=7.0,
        )
    )  # fmt: skip
    registry = prometheus_client.CollectorRegistry()
    figures = Exporter(store=store, connection={"kafka.bootstrap.servers": "localhost:9092"})
    registry.register(KafkaCollector(figures))
    # What a look at brokers finds; nobody looks here.
    watch = figures._poller
    assert watch is not None
    watch._headroom = [(("q", "id", "0", "t", "0"), 3_600.0)]
    watch._ages = [(("q", "id", "0", "t", "0"), 5.0)]
    text = prometheus_client.generate_latest(registry).decode()
    return {
        sample.name: set(sample.labels) for family in text_string_to_metric_families(text) for sample in family.samples
    }


def plain(expression: str) -> str:
    """Return an expression as Grafana sends it."""
    for name, value in _VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


@pytest.mark.parametrize("expression", QUERIES)
def test_expression_parses_and_names_what_a_scrape_has(expression: str, scrape: dict[str, set[str]]) -> None:
    text = plain(expression)
    promql_parser.parse(text)
    names = set(_NAME.findall(text))
    assert names
    assert names - scrape.keys() == set()
    for name, matchers in re.findall(r"(pyspark_kafka_\w+)\{([^}]*)\}", text):
        assert set(re.findall(r"(\w+)\s*(?:=~|!=|=)", matchers)) <= scrape[name] | _ADDED, name
    labels = set().union(*(scrape[name] for name in names)) | _ADDED
    for grouped in re.findall(r"\b(?:by|on) \(([^)]*)\)", text):
        assert {each.strip() for each in grouped.split(",")} <= labels, expression


def test_an_expression_that_is_wrong_does_not_parse() -> None:
    with pytest.raises(ValueError, match="paren"):
        promql_parser.parse("sum(rate(pyspark_kafka_rows_read_total[5m])")


class Series:
    """Evaluates those expressions of PromQL that compare a counter with its past, over the scrapes of one series.

    Args:
        scrapes: what was scraped, one each minute from minute 0 on; None if the series was not there.
    """

    def __init__(self, *scrapes: float | None) -> None:
        self._samples = {minute * 60.0: value for minute, value in enumerate(scrapes) if value is not None}

    def alerts(self, expression: str) -> list[int]:
        """Return the minutes at which an expression has a value."""
        parsed = promql_parser.parse(expression)
        return [minute for minute in range(40) if self._value(parsed, minute * 60.0) is not None]

    def _within(self, begin: float, end: float) -> list[float]:
        return [value for at, value in self._samples.items() if begin < at <= end]

    def _value(self, node: Any, at: float) -> float | None:
        if isinstance(node, promql_parser.ParenExpr):
            return self._value(node.expr, at)
        if isinstance(node, promql_parser.VectorSelector):
            end = at - (node.offset.total_seconds() if node.offset else 0.0)
            # A series that is not in a scrape ends there.
            return self._samples.get(end)
        if isinstance(node, promql_parser.Call):
            found = self._within(at - node.args[0].range.total_seconds(), at)
            if node.func.name == "last_over_time":
                return found[-1] if found else None
            assert node.func.name == "changes"
            return float(sum(a != b for a, b in itertools.pairwise(found))) if found else None
        assert isinstance(node, promql_parser.BinaryExpr)
        left = self._value(node.lhs, at)
        if str(node.op) == ">=":
            assert isinstance(node.rhs, promql_parser.NumberLiteral)
            return left if left is not None and left >= node.rhs.val else None
        assert str(node.op) == "unless"
        return left if self._value(node.rhs, at) is None else None


def test_alert_fires_while_a_program_that_was_there_is_gone() -> None:
    (expression,) = (rule["expr"] for rule in ALERTS if rule["alert"] == "KafkaProgramGone")
    series = Series(*[None] * 5, *[1] * 5, *[None] * 10, *[1] * 20)
    assert series.alerts(expression) == list(range(10, 20))


def test_alert_fires_for_a_program_that_restarts_again_and_again() -> None:
    (expression,) = (rule["expr"] for rule in ALERTS if rule["alert"] == "KafkaProgramRestarts")
    assert Series(*[1] * 10, *[2] * 10, *[3] * 20).alerts(expression) == []
    assert Series(*[1] * 10, *[2] * 2, *[3] * 2, *[4] * 26).alerts(expression) == list(range(14, 39))


def test_rules_have_what_prometheus_asks_for_and_what_an_operator_needs() -> None:
    assert RULES.keys() == {"groups"}
    assert len({rule["alert"] for rule in ALERTS}) == len(ALERTS)
    for rule in ALERTS:
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}, rule["alert"]
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s")), rule["alert"]
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"].keys() == {"summary", "description"}
        assert rule["alert"] in PAGE, "the page says what to do"


def test_labels_in_the_texts_of_rules_are_those_of_their_expressions(scrape: dict[str, set[str]]) -> None:
    for rule in ALERTS:
        named = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        aggregated = re.search(r"\bby \(([^)]*)\)", rule["expr"])
        left = {each.strip() for each in aggregated[1].split(",")} if aggregated else None
        known = set().union(*(scrape[name] for name in _NAME.findall(rule["expr"]))) | _ADDED if left is None else left
        assert named <= known, rule["alert"]


def test_dashboard_has_what_grafana_asks_for() -> None:
    assert DASHBOARD["schemaVersion"] >= 36
    assert "id" not in DASHBOARD, "Grafana sets it"
    assert DASHBOARD["uid"]
    ids = [panel["id"] for panel in PANELS]
    assert len(set(ids)) == len(ids)
    variables = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    for panel in PANELS:
        assert panel["title"]
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24
        if panel["type"] == "row":
            continue
        assert panel["description"].endswith("."), panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)
        for target in panel["targets"]:
            used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"}
            assert used <= variables.keys(), panel["title"]


def test_every_field_of_the_dashboard_is_one_of_grafanas_own_model() -> None:
    sdk = pytest.importorskip("grafana_foundation_sdk", reason="it needs Python 3.11")
    for module in ("cog.plugins", "cog.encoder", "models.dashboard"):
        importlib.import_module(f"grafana_foundation_sdk.{module}")
    sdk.cog.plugins.register_default_plugins()
    read = json.loads(sdk.cog.encoder.JSONEncoder().encode(sdk.models.dashboard.Dashboard.from_json(DASHBOARD)))

    def lost(ours: Any, theirs: Any, place: str) -> Iterator[str]:
        if isinstance(ours, dict) and isinstance(theirs, dict):
            for name, value in ours.items():
                yield from [f"{place}/{name}"] if name not in theirs else lost(value, theirs[name], f"{place}/{name}")
        elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
            for number, pair in enumerate(zip(ours, theirs, strict=True)):
                yield from lost(*pair, f"{place}/{number}")
        elif ours != theirs:
            yield place

    assert list(lost(DASHBOARD, read, "")) == []


def test_panels_do_not_lie_on_each_other() -> None:
    def cells() -> Iterator[tuple[int, int]]:
        for panel in PANELS:
            place = panel["gridPos"]
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    yield x, y

    found = list(cells())
    assert len(set(found)) == len(found)


def test_every_figure_is_in_the_page(scrape: dict[str, set[str]]) -> None:
    for name in scrape:
        whole = name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")
        assert f"`{whole}`" in PAGE, name
    named = set(re.findall(r"^\| `(pyspark_kafka_\w+)`", PAGE, re.MULTILINE))
    assert len(named) > 20
    known = {name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name in scrape}
    assert named == known
