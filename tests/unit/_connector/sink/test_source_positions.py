"""Where an exactly-once continuous query continues: checkpoint, group and record, in every way that they can differ."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.transactions.group_positions import GroupPosition
from pyspark_kafka._connector.sink.source_positions import (
    LaneRecord,
    PositionNote,
    check_owned,
    committed_states,
    merge_positions,
    restored,
)
from pyspark_kafka.errors import CheckpointError

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
IDS = {"a": "id-a", "b": "id-b"}


def at(offset: int, topic_id: str = "id-a", query_id: str = "q") -> GroupPosition:
    return GroupPosition(offset, PositionNote(query_id, topic_id, "7").text())


def record(*partitions: TopicPartition, **ids: str) -> LaneRecord:
    return LaneRecord("owner", "group", "prefix", 1, {tp: {**IDS, **ids}[tp.topic] for tp in partitions})


def test_the_later_position_counts_partition_by_partition() -> None:
    merged = merge_positions({A0: 5, A1: 9}, {A0: at(8), A1: at(3)}, record(A0, A1), IDS)
    assert merged == {A0: 8, A1: 9}


def test_a_partition_that_only_the_group_knows_continues_there() -> None:
    assert merge_positions({A0: 5}, {A0: at(5), A1: at(3)}, record(A0, A1), IDS) == {A0: 5, A1: 3}


@pytest.mark.parametrize("known", [None, record(A1)], ids=["first run", "not read since"])
def test_the_checkpoint_counts_for_what_was_not_read_in_this_mode(known: LaneRecord | None) -> None:
    assert merge_positions({A0: 5}, {A0: at(8), A1: at(3)}, known, IDS)[A0] == 5


def test_record_that_the_checkpoint_has_lost_is_that_of_the_group() -> None:
    lost = LaneRecord("owner", "group", "prefix")
    known = restored(lost, {A0: at(8), A1: at(3), B0: at(0, "id-b")})
    assert known == LaneRecord("owner", "group", "prefix", 3, {A0: "id-a", A1: "id-a", B0: "id-b"})
    assert merge_positions({A0: 5}, {A0: at(8), A1: at(3)}, restored(lost, {A0: at(8)}), IDS) == {A0: 8}


def test_record_of_the_checkpoint_takes_precedence_over_the_group() -> None:
    assert restored(record(A0), {A0: at(8), A1: at(3)}) == record(A0)
    assert restored(LaneRecord("owner", "group", "prefix"), {}) == LaneRecord("owner", "group", "prefix")


def test_a_position_that_is_gone_is_an_error_and_names_the_way_out() -> None:
    with pytest.raises(CheckpointError, match=r"no position any more for a-1.*delete the checkpoint's file") as raised:
        merge_positions({A0: 5, A1: 5}, {A0: at(8)}, record(A0, A1), IDS)
    assert raised.value.condition == "OFFSETS_GROUP_EXPIRED"


def test_a_position_that_is_gone_is_an_error_though_the_checkpoint_never_had_it() -> None:
    with pytest.raises(CheckpointError, match="no position any more for a-0"):
        merge_positions({}, {}, record(A0), IDS)


def test_deleted_and_recreated_topics_are_left_to_the_source() -> None:
    # Brokers remove the positions of a deleted topic.
    assert merge_positions({A0: 5, B0: 4}, {A0: at(8)}, record(A0, B0), {"a": "id-a"}) == {A0: 8, B0: 4}
    assert merge_positions({A0: 5}, {A0: at(8)}, record(A0), {"a": "another"}) == {A0: 5}
    assert merge_positions({A0: 5}, {}, record(A0), {"a": "another"}) == {A0: 5}


def test_a_topic_that_a_lagging_broker_does_not_know_keeps_its_position() -> None:
    assert merge_positions({A0: 5}, {A0: at(8)}, record(A0), {}) == {A0: 8}


def test_unknown_topic_ids_match_any_topic() -> None:
    assert merge_positions({A0: 5}, {A0: at(8, "-")}, record(A0, a="-"), {"a": "-"}) == {A0: 8}
    # After an upgrade of the brokers.
    assert merge_positions({A0: 5}, {A0: at(8, "-")}, record(A0, a="-"), IDS) == {A0: 8}


@pytest.mark.parametrize("text", ["", "someone's", "v2 q id-a 7", "v1 q id-a", "v1 other id-a 7"])
def test_positions_of_others_are_refused(text: str) -> None:
    with pytest.raises(CheckpointError, match="'g' has positions that query q has not written: a-1"):
        check_owned({A0: at(1), A1: GroupPosition(3, text)}, "q", "g")


def test_own_positions_are_taken() -> None:
    check_owned({A0: at(1), B0: at(3, "-")}, "q", "g")


def test_no_row_is_lost_or_doubled_over_random_lives() -> None:
    """Lanes commit, the checkpoint follows late or not at all, runs end anywhere: each start is where the group is."""
    for seed in range(300):
        dice = random.Random(seed)
        checkpoint: dict[TopicPartition, int] = {}
        group: dict[TopicPartition, GroupPosition] = {}
        known: LaneRecord | None = None
        truth: dict[TopicPartition, int] = {}
        for _ in range(dice.randrange(1, 6)):
            start = merge_positions(checkpoint, group, known, IDS)
            assert {tp: start[tp] for tp in truth} == truth
            planned = {tp: start.get(tp, 0) for tp in (A0, A1, B0) if tp in start or dice.random() < 0.6}
            group.update({tp: at(offset, IDS[tp.topic]) for tp, offset in planned.items()})
            if dice.random() < 0.1:
                continue
            known = record(*planned)
            truth = dict(planned)
            for _ in range(dice.randrange(5)):
                for tp in planned:
                    if dice.random() < 0.5:
                        truth[tp] += dice.randrange(1, 9)
                        group[tp] = at(truth[tp], IDS[tp.topic])
                if dice.random() < 0.5:
                    checkpoint = dict(truth)


@pytest.mark.parametrize("state", ["", "abc,7-w.1,-"])
def test_note_of_a_position_is_the_same_after_its_text(state: str) -> None:
    note = PositionNote("q", "id-a", "7", state)
    assert PositionNote.parse(note.text()) == note


@pytest.mark.parametrize("text", ["", "v1 q id 7 state", "v2 q id 7", "v3 q id 7 state", "v2 q id 7 a b"])
def test_foreign_text_is_not_a_note(text: str) -> None:
    assert PositionNote.parse(text) is None


def stateful(offset: int, epoch: str, state: str = "s", topic_id: str = "id-a") -> GroupPosition:
    return GroupPosition(offset, PositionNote("q", topic_id, epoch, state).text())


@pytest.mark.parametrize(
    ("position", "found"),
    [
        (stateful(6, "3"), "s"),
        (stateful(5, "5"), "s"),
        (stateful(5, "4"), None),
        (stateful(5, "-"), None),
        (stateful(4, "9"), None),
        (stateful(6, "3", ""), ""),
        (stateful(6, "3", topic_id="other"), None),
    ],
    ids=["ahead", "later epoch", "same epoch", "start of a run", "behind", "without state", "another topic"],
)
def test_state_goes_with_the_position_that_counts(position: GroupPosition, found: str | None) -> None:
    states = committed_states({A0: 5}, {A0: position}, record(A0), IDS, 4)
    assert states == ({} if found is None else {A0: found})


def test_state_of_a_topic_that_was_recreated_begins_empty() -> None:
    assert committed_states({A0: 5}, {A0: stateful(6, "5")}, record(A0, a="former"), IDS, 4) == {A0: None}


def test_state_of_a_partition_that_only_the_group_knows_is_that_of_the_group() -> None:
    group = {A0: stateful(0, "-"), A1: stateful(3, "-")}
    assert committed_states({}, group, record(A0), IDS, -1) == {A0: "s"}


def test_position_of_a_recreated_topic_counts_while_the_checkpoint_has_that_of_the_former_one() -> None:
    after = replace(record(A0, A1), former={A0: 90})
    group = {A0: stateful(40, "5"), A1: stateful(3, "5")}
    assert merge_positions({A0: 90, A1: 3}, group, after, IDS) == {A0: 40, A1: 3}
    assert committed_states({A0: 90, A1: 3}, group, after, IDS, 5) == {A0: "s"}
    # Once the checkpoint has read the new topic.
    assert merge_positions({A0: 50, A1: 3}, group, after, IDS) == {A0: 50, A1: 3}
    assert committed_states({A0: 50, A1: 3}, group, after, IDS, 5) == {}


def test_partition_that_the_last_plan_did_not_have_counts_as_long_as_the_checkpoint_has_it() -> None:
    after = replace(record(A0), left={B0: "id-b"})
    group = {A0: stateful(6, "5"), B0: stateful(8, "5", topic_id="id-b")}
    assert merge_positions({A0: 5, B0: 7}, group, after, IDS) == {A0: 6, B0: 8}
    assert committed_states({A0: 5, B0: 7}, group, after, IDS, 4) == {A0: "s", B0: "s"}
    # If it comes back later, it is read from its beginning.
    assert merge_positions({A0: 5}, group, after, IDS) == {A0: 6}
    assert committed_states({A0: 5}, group, after, IDS, 4) == {A0: "s"}
    # Or its topic was recreated.
    assert merge_positions({A0: 5, B0: 7}, group, after, {**IDS, "b": "new"}) == {A0: 6, B0: 7}
    assert committed_states({A0: 5, B0: 7}, group, after, {**IDS, "b": "new"}, 4) == {A0: "s", B0: None}


def test_record_of_a_run_knows_what_the_checkpoint_has_from_before() -> None:
    ids = {A0: "id-a", B0: "id-b"}
    first = LaneRecord("owner", "group", "prefix").planned({}, ids, 2)
    assert (first.lanes, first.partitions, first.former, first.left) == (2, ids, {}, {})
    # B was deleted, and A recreated.
    second = first.planned({A0: 5, B0: 7}, {A0: "new"}, 1)
    assert (second.lanes, second.partitions, second.former, second.left) == (
        2, {A0: "new"}, {A0: 5}, {B0: "id-b"},
    )  # fmt: skip
    # The same plan again; then B comes back before the checkpoint has an epoch without it.
    assert second.planned({A0: 5, B0: 7}, {A0: "new"}, 1) == second
    third = second.planned({A0: 5, B0: 7}, {A0: "new", B0: "other"}, 1)
    assert (third.former, third.left) == ({A0: 5, B0: 7}, {})
    assert second.planned({A0: 2}, {A0: "new", B0: "other"}, 1).former == {}
