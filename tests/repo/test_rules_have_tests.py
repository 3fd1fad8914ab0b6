"""Every rule of fetching has a test of its name: R1 to R15 by number, those of the other chapters by the table here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
UNIT_RECORDS = TESTS / "unit" / "records"

# R14 and R15 are about fetch answers, which client/ handles; the others belong to the codec.
CODEC_RULES = range(1, 14)
RULES = range(1, 16)

COMPRESSION = {
    "gzip may have several members": ["test_what_others_write_is_read"],
    "snappy is raw or framed, and its claims are summed first": [
        "test_what_others_write_is_read",
        "test_an_impossible_snappy_claim_is_refused_before_the_decompressor_sees_it",
        "test_snappy_claims_are_summed_before_any_block_is_decompressed",
    ],
    "bytes behind a frame are an error": ["test_a_cut_or_extended_frame_is_corruption_not_a_crash"],
    "lz4 with and without checksums": [
        "test_what_others_write_is_read",
        "test_lz4_blocks_that_we_write_are_independent",
    ],
    "zstd without a content size, and of several frames": ["test_what_others_write_is_read"],
    "a codec that does not exist": ["test_a_codec_that_does_not_exist_is_named"],
    "a cut-off tail is no decompression error": [
        "test_a_cut_off_compressed_batch_is_left_out_and_a_complete_bad_one_is_not"
    ],
    "bounded output": ["test_output_beyond_the_bound_is_refused_and_the_bound_itself_is_not"],
    "what clients wrote, with every codec": [
        "test_codec_fixtures_are_compressed_with_their_codec",
        "test_what_was_sent_is_read",
    ],
}

ISOLATION = {
    "step 1: sort, with duplicates": ["test_the_list_may_be_unsorted_and_hold_duplicates"],
    "step 2: active from the batch that reaches the first offset": [
        "test_a_transaction_is_active_from_the_batch_that_reaches_its_first_offset",
        "test_entries_beyond_the_fetched_bytes_hide_nothing",
    ],
    "step 3: an abort marker ends it, idempotently": [
        "test_an_entry_without_records_ends_with_its_marker",
        "test_a_marker_of_an_empty_transaction_without_an_entry_changes_nothing",
        "test_a_marker_without_an_entry_does_not_end_another_transaction",
    ],
    "step 4: skip the whole batch, but advance": ["test_a_hidden_batch_is_not_decompressed_but_advances"],
    "step 5: never what is not transactional": ["test_records_of_a_producer_outside_transactions_are_never_hidden"],
    "ends are planned under the isolation of the read": [
        "test_offsets_are_asked_for_under_the_isolation_level",
        "test_the_end_under_read_committed_is_before_an_open_transaction",
    ],
    "an open transaction is named": ["test_an_open_transaction_is_named_when_the_range_lies_behind_it"],
}

FETCHING = {
    "leader hints and node endpoints": [
        "test_a_leader_hint_is_followed_without_asking_for_metadata",
        "test_an_address_in_a_hint_is_used_for_a_broker_that_was_not_known",
        "test_a_hint_that_is_old_or_cannot_be_followed_leads_to_metadata",
    ],
    "truncation: OffsetForLeaderEpoch after a change of leader": [
        "test_a_new_leader_is_asked_whether_it_has_what_was_read_before_it_is_read_from",
        "test_a_log_that_was_cut_below_the_position_is_data_loss_that_names_what_is_gone",
        "test_a_leader_that_cannot_tell_or_has_just_the_position_is_read_from",
    ],
    "sessionless": [
        "test_a_request_is_sessionless_and_carries_isolation_epoch_and_rack",
        "test_requests_carry_topic_id_and_leader_epoch_and_no_session",
    ],
    "one unknown topic id caps the request": [
        "test_one_topic_without_an_id_caps_the_whole_request_at_version_12",
        "test_without_topic_ids_fetches_stay_at_version_12",
    ],
    "NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH": [
        "test_a_moved_leader_is_followed",
        "test_passing_errors_are_waited_out",
    ],
    "UNKNOWN_LEADER_EPOCH, OFFSET_NOT_AVAILABLE, KAFKA_STORAGE_ERROR, REPLICA_NOT_AVAILABLE": [
        "test_passing_errors_are_waited_out",
    ],
    "UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID: passing": ["test_passing_errors_are_waited_out"],
    "UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID: both ids": [
        "test_a_topic_made_again_is_noticed_and_names_both_ids",
        "test_a_topic_made_again_while_it_is_read_is_noticed",
    ],
    "OFFSET_OUT_OF_RANGE from a follower": ["test_out_of_range_at_a_follower_is_asked_of_the_leader"],
    "OFFSET_OUT_OF_RANGE from the leader": [
        "test_an_offset_below_the_log_gives_the_bounds_of_the_log",
        "test_records_trimmed_while_reading_give_the_position_reached",
        "test_a_position_beyond_the_log_gives_the_bounds_of_the_log",
    ],
    "TOPIC_AUTHORIZATION_FAILED": ["test_a_refused_topic_is_an_access_error_that_names_it"],
    "CORRUPT_MESSAGE, UNSUPPORTED_COMPRESSION_TYPE": [
        "test_fatal_errors_name_range_and_offset_at_once",
        "test_a_topic_of_zstd_is_refused_by_name_where_fetches_are_older_than_it",
    ],
    "unknown errors": [
        "test_an_unknown_error_is_fatal_after_some_attempts",
        "test_an_unknown_error_that_passes_is_survived",
    ],
    "a preferred replica, for the metadata age, bounded waits": [
        "test_a_preferred_replica_is_read_from",
        "test_a_preferred_replica_is_kept_for_the_metadata_age_then_the_leader_is_asked",
        "test_a_follower_that_lags_is_left_for_the_leader",
        "test_a_follower_that_dies_is_left_for_the_leader",
    ],
    "throttling": [
        "test_a_throttled_client_waits_before_it_asks_again",
        "test_an_answer_of_nothing_that_was_asked_for_is_asked_again",
    ],
    "bytes that advance nothing": ["test_answers_that_lie_below_the_position_do_not_spin_and_are_not_given"],
    "no bytes": ["test_empty_answers_do_not_spin"],
    "frames are bounded": ["test_an_impossible_size_is_refused"],
    "max.bytes is soft": ["test_a_batch_larger_than_the_fetch_size_comes_whole"],
    "every version": [
        "test_every_field_is_read_in_every_version",
        "test_every_fetch_version_reads_the_same",
        "test_every_fetch_version_reads_from_kafka_4",
    ],
}
TABLE = COMPRESSION | ISOLATION | FETCHING


def find_tests() -> dict[str, set[Path]]:
    """Give the files that have a test, by the test's name."""
    found: dict[str, set[Path]] = {}
    for path in TESTS.rglob("test_*.py"):
        for name in re.findall(r"^ *(?:async )?def (test_\w+)\(", path.read_text(), re.MULTILINE):
            found.setdefault(name, set()).add(path)
    return found


FOUND = find_tests()


@pytest.mark.parametrize("number", RULES)
def test_a_numbered_rule_has_a_test_of_its_name(number: int) -> None:
    assert any(name.startswith(f"test_r{number}_") for name in FOUND)


@pytest.mark.parametrize("number", CODEC_RULES)
def test_a_rule_of_the_codec_is_tested_on_both_variants(number: int) -> None:
    files = {path for name, paths in FOUND.items() if name.startswith(f"test_r{number}_") for path in paths}
    # The fixture is autouse where it is imported.
    assert any(path.parent == UNIT_RECORDS and "codec_variant" in path.read_text() for path in files)


@pytest.mark.parametrize("rule", TABLE)
def test_a_rule_without_a_number_has_the_tests_that_the_table_names(rule: str) -> None:
    assert [name for name in TABLE[rule] if name not in FOUND] == []
