"""The page about autoscaling: its resources fit their program, whose group lags as KEDA counts."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume, produce
from kit.pointers import REPO
from kit.reading import client_of, positions_of_group
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._ops.metrics.export import families, lag_poller

FOLDER = REPO / "deploy" / "kubernetes"
PAGE = (REPO / "docs" / "autoscaling.md").read_text()


def resources() -> dict[str, dict[str, Any]]:
    """Return the resources of the file by their kinds."""
    return {each["kind"]: each for each in yaml.safe_load_all((FOLDER / "autoscaling.yaml").read_text())}


def triggers(kind: str, of_type: str) -> list[dict[str, Any]]:
    return [each["metadata"] for each in resources()[kind]["spec"]["triggers"] if each["type"] == of_type]


def program() -> Any:
    spec = importlib.util.spec_from_file_location("query_on_kubernetes", FOLDER / "query.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lag(servers: str, topic: str, group: str, partitions: int) -> int:
    """Return the lag that KEDA's scaler computes with `offsetResetPolicy: earliest`.

    Source: kedacore/keda, pkg/scalers/kafka_scaler.go, getLagForPartition.
    """
    committed = positions_of_group(servers, group)
    with client_of(servers) as client:
        ends = list_offsets(client, {TopicPartition(topic, number): Latest() for number in range(partitions)})
    return sum(end - committed.get(where.partition, 0) for where, end in ends.items())


@pytest.mark.usefixtures("spark")
def test_job_lags_by_all_records_before_its_first_run_and_by_new_ones_after_it(
    bootstrap_servers: str,
    make_topic: TopicMaker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, target, group = make_topic(partitions=3), make_topic(), f"{tmp_path.name}-group"
    module = program()
    monkeypatch.setattr(module, "kafka_options", lambda servers: {"kafka.bootstrap.servers": servers})
    # Partition 2 stays empty.
    produce(bootstrap_servers, source, [Record(b"k", b"v", partition=number % 2) for number in range(5)])
    assert lag(bootstrap_servers, source, group, 3) == 5
    module.main(bootstrap_servers, source, target, str(tmp_path / "checkpoint"), group)
    assert lag(bootstrap_servers, source, group, 3) == 0
    assert sorted(positions_of_group(bootstrap_servers, group)) == [0, 1, 2]
    produce(bootstrap_servers, source, [Record(b"k", b"v", partition=2)] * 2)
    assert lag(bootstrap_servers, source, group, 3) == 2
    module.main(bootstrap_servers, source, target, str(tmp_path / "checkpoint"), group)
    assert lag(bootstrap_servers, source, group, 3) == 0
    assert len(consume(bootstrap_servers, target, 7)) == 7


def test_triggers_name_the_topic_and_the_group_of_the_program() -> None:
    spec = resources()["ScaledJob"]["spec"]
    (container,) = spec["jobTargetRef"]["template"]["spec"]["containers"]
    servers, source, _, _, group = container["args"]
    assert container["command"][-1] in (FOLDER / "submit.sh").read_text()
    assert spec["maxReplicaCount"] == 1
    for trigger in triggers("ScaledJob", "kafka") + triggers("ScaledObject", "kafka"):
        assert (trigger["bootstrapServers"], trigger["topic"], trigger["consumerGroup"]) == (servers, source, group)
        assert trigger["offsetResetPolicy"] == "earliest"


def test_series_of_the_page_and_of_the_trigger_exist_and_are_the_same() -> None:
    (trigger,) = triggers("ScaledObject", "prometheus")
    assert trigger["query"] in PAGE
    named = set(re.findall(r"pyspark_kafka_\w+", PAGE + trigger["query"]))
    assert named
    exported = {each.name for each in vars(families).values() if isinstance(each, families.Family)}
    assert named <= exported | {lag_poller.TIME_BEHIND.name}
