"""Which key groups are idle: the time counts in which the lane waits for rows, and no other."""

from __future__ import annotations

from pyspark_kafka.continuous.state.idle_groups import IdleGroups


def test_key_group_is_idle_after_its_time_without_rows_until_it_has_rows() -> None:
    groups = IdleGroups(["a", "b"], 3.0)
    assert [groups.poll(float(now)) for now in (10, 11, 12)] == [[], [], []]
    groups.has_rows("b")
    assert groups.poll(13.0) == ["a"]
    assert groups.poll(14.0) == ["a"]
    assert groups.poll(15.0) == ["a", "b"]
    groups.has_rows("a")
    assert groups.poll(15.5) == ["b"]
    groups.forget("b")
    assert groups.poll(16.5) == []
    assert groups.poll(17.5) == []
    assert groups.poll(18.5) == ["a"]
    groups.wait_again("a")
    assert [groups.poll(19.5 + seconds) for seconds in range(3)] == [[], [], ["a"]]


def test_time_in_which_a_function_is_slow_counts_as_a_second() -> None:
    groups = IdleGroups(["a"], 3.0)
    assert [groups.poll(now) for now in (0.0, 600.0, 1_200.0, 1_800.0)] == [[], [], [], ["a"]]


def test_time_before_the_first_poll_does_not_count() -> None:
    groups = IdleGroups(["a"], 0.5)
    assert groups.poll(1_000_000.0) == []
