"""The task of a process, for its spans."""

from __future__ import annotations

from pyspark_kafka._base.traces import task_place
from pyspark_kafka._base.traces.task_place import TaskPlace, current_place, find_places_with


def test_place_is_what_the_registered_function_finds() -> None:
    before, place = task_place._find, TaskPlace("query", None, "3", 1, 2, 9)
    find_places_with(lambda: place)
    try:
        assert current_place() is place
    finally:
        find_places_with(before)


def test_attributes_of_a_place_leave_out_what_is_unknown() -> None:
    assert TaskPlace("query", None, "3", 1, 2, 9).attributes == {
        "pyspark_kafka.query.id": "query",
        "pyspark_kafka.batch.id": "3",
        "pyspark_kafka.stage": 1,
        "pyspark_kafka.task": 2,
        "pyspark_kafka.attempt": 9,
    }
