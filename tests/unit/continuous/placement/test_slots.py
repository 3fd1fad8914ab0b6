"""When a run is planned again because of slots, and what a session tells about them."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_kafka.continuous.placement.sessions import check_session
from pyspark_kafka.continuous.placement.slots import SlotWatch, TaskSlots
from pyspark_kafka.errors import CapabilityError, ContinuousQueryError


@dataclass
class Slots:
    total: int
    free: int = 0
    are_exact: bool = True
    looks: int = 0

    def count(self) -> int:
        self.looks += 1
        return self.total

    def count_free(self) -> int:
        self.looks += 1
        return self.free


def watch(slots: Slots, tasks: int, *, limit: int | None = None, wants_more: bool = True) -> SlotWatch:
    return SlotWatch(slots, tasks, 100.0, limit=limit, wants_more=wants_more)  # type: ignore[arg-type]


def test_tasks_that_cannot_start_are_planned_again() -> None:
    slots = Slots(2)
    looking = watch(slots, 2)
    assert not looking.look(looking.due_at, is_running=False)
    slots.total = 1
    assert looking.look(looking.due_at, is_running=False)
    assert looking.due_at - 100 <= 3


def test_free_slots_count_when_they_were_free_twice_in_a_row() -> None:
    slots = Slots(3)
    looking = watch(slots, 2)
    now = 100.0
    for free, expected in [(1, False), (0, False), (1, False), (2, True)]:
        slots.free = free
        now += 3
        assert looking.look(now, is_running=True) is expected
        assert looking.due_at == now + 3


@pytest.mark.parametrize(
    ("slots", "limit", "wants_more"),
    [
        (Slots(9, 9), 2, True),
        (Slots(9, 9), None, False),
        (Slots(9, 9, are_exact=False), None, True),
    ],
    ids=["as many as asked", "no lanes for more", "not known"],
)
def test_slots_are_not_recounted_if_more_cannot_be_planned(slots: Slots, limit: int | None, wants_more: bool) -> None:
    looking = watch(slots, 2, limit=limit, wants_more=wants_more)
    assert not looking.look(105.0, is_running=True)
    assert looking.due_at == float("inf")
    assert slots.looks == 0


def test_user_limit_is_kept_although_an_inexact_count_is_lower() -> None:
    assert not watch(Slots(2, are_exact=False), 4, limit=4).look(101.0, is_running=False)
    assert watch(Slots(2, are_exact=False), 4).look(101.0, is_running=False)


def connect(plan: str, **conf: str) -> Any:
    def sql(text: str) -> Any:
        assert text.startswith("EXPLAIN")
        return SimpleNamespace(collect=lambda: [(plan,)])

    kind = type("SparkSession", (SimpleNamespace,), {"__module__": "pyspark.sql.connect.session"})
    return kind(sql=sql, conf=conf_of(conf))


def conf_of(values: dict[str, str]) -> Any:
    return SimpleNamespace(get=lambda name, default=None: values.get(name.replace(".", "_"), default))


def test_slots_of_spark_connect_are_the_splits_of_a_plan() -> None:
    plan = "== Physical Plan ==\n*(1) Range (0, 1, step=1, splits=%s)\n"
    assert TaskSlots(connect(plan % "12")).count() == 12
    assert TaskSlots(connect(plan % "Some(6)", spark_task_cpus="4")).count() == 1
    assert TaskSlots(connect(plan % "2", spark_task_cpus="4")).count() == 1


def test_session_that_has_ended_is_named() -> None:
    ended: Any = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=None))
    with pytest.raises(ContinuousQueryError, match="session of a continuous query has ended") as raised:
        TaskSlots(ended).count()
    assert not raised.value.retriable


def test_dynamic_allocation_is_refused_before_anything_is_read() -> None:
    session: Any = SimpleNamespace(conf=conf_of({"spark_dynamicAllocation_enabled": "true", "spark_master": "yarn"}))
    with pytest.raises(CapabilityError, match="dynamic allocation"):
        check_session(session)
    session.conf = conf_of({"spark_dynamicAllocation_enabled": "true", "spark_master": "local[4]"})
    check_session(session)


@pytest.mark.parametrize(("is_local", "listed", "executors"), [(True, 1, 1), (False, 1, 0), (False, 4, 3)])
def test_executors_are_counted_without_the_driver(is_local: bool, listed: int, executors: int) -> None:
    tracker = SimpleNamespace(getExecutorInfos=lambda: [None] * listed)
    context = SimpleNamespace(isStopped=lambda: False, isLocal=lambda: is_local, statusTracker=lambda: tracker)
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: context)))
    assert TaskSlots(session).count_executors() == executors
