"""The table of rights against real brokers: with exactly those a feature works, and one fewer is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.fixtures.guarded import OLDER_VERSION
from kit.rights import feature, renamed
from kit.rights_in_use import TRIALS, Guarded, Trial
from pyspark_kafka.errors import ConnectorError
from pyspark_kafka.testing.jars import DEFAULT_VERSION

# A real broker, though not the shared one that the fixtures' marker is derived from.
# More lines than that are not helpful.
_MAX_LINES = 12
_EACH = [pytest.param(key, run, id=f"{key}, {name}") for key, name, run in TRIALS]


@pytest.fixture(params=[DEFAULT_VERSION, pytest.param(OLDER_VERSION, marks=pytest.mark.long)])
def guarded(request: pytest.FixtureRequest, guarded_of: Callable[[str], Guarded]) -> Guarded:
    return guarded_of(request.param)


@pytest.mark.parametrize(("key", "run"), _EACH)
def test_feature_works_with_its_rights_and_names_each_one_that_is_missing(
    guarded: Guarded, tmp_path: Path, key: str, run: Callable[[Trial], None]
) -> None:
    for left_out in feature(key).rights:
        # New names: what a run before has checked, or created, must not count.
        trial, rights = guarded.trial(key, tmp_path)
        missing = renamed(left_out, trial.names)
        guarded.acls.put(right for right in rights if right != missing)
        with pytest.raises(ConnectorError) as caught:
            run(trial)
        text = str(caught.value)
        assert f"{missing.operation.upper()}" in text, text
        assert f"--operation {missing.operation}" in text, text
        assert f"--{missing.kind} {missing.family or missing.name}".rstrip() in text, text
    trial, rights = guarded.trial(key, tmp_path)
    guarded.acls.put(rights)
    run(trial)


@pytest.mark.parametrize(("key", "run"), _EACH)
def test_lines_of_the_errors_lead_from_no_right_to_the_least_ones(
    guarded: Guarded, tmp_path: Path, key: str, run: Callable[[Trial], None]
) -> None:
    trial, rights = guarded.trial(key, tmp_path)
    guarded.acls.put([])
    lines: list[str] = []
    while True:
        try:
            run(trial)
            break
        except ConnectorError as error:
            assert len(lines) < _MAX_LINES, lines
            lines.append(guarded.acls.run_line_of(str(error)))
    assert guarded.acls.held() == guarded.acls.of(rights)


def test_optional_right_of_an_exactly_once_write_is_named_once_in_a_warning(
    guarded: Guarded, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for optional in (False, True):
        trial, rights = guarded.trial("exactly-once", tmp_path)
        (right,) = (renamed(each, trial.names) for each in feature("exactly-once").optional)
        guarded.acls.put([*rights, right] if optional else rights)
        caplog.clear()
        for epoch in range(3):
            trial.write_micro_batch_once(epoch=epoch)
        warnings = [record.getMessage() for record in caplog.records if "commit topic" in record.getMessage()]
        assert len(warnings) == (0 if optional else 1), warnings
        assert all(f"--operation DescribeConfigs --topic {right.name}`" in each for each in warnings)


def test_missing_right_on_the_group_of_a_read_is_named_in_a_warning(
    guarded: Guarded, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for optional in (False, True):
        trial, rights = guarded.trial("committed-group", tmp_path)
        (right,) = (renamed(each, trial.names) for each in feature("committed-group").optional)
        guarded.acls.put([*rights, right] if optional else rights)
        caplog.clear()
        trial.read_and_commit()
        warnings = [record.getMessage() for record in caplog.records if "consumer group" in record.getMessage()]
        assert len(warnings) == (0 if optional else 1), warnings
        assert all(f"--operation Read --group {right.name}`" in each for each in warnings)


def test_transactions_are_listed_as_far_as_the_user_may_see_them(guarded: Guarded, tmp_path: Path) -> None:
    trial, _ = guarded.trial("list", tmp_path)
    sink, topic = (renamed(right, trial.names) for right in feature("list").optional)
    trial.leave_transaction_open()
    guarded.acls.put([])
    assert "No open transaction, among the transactional ids that this user may describe" in trial.command("list")
    guarded.acls.put([sink])
    (told,) = json.loads(trial.command("list", "--json"))
    assert (told["transactional_id"], told["topic_partitions"]) == (sink.name, [])
    guarded.acls.put([sink, topic])
    (told,) = json.loads(trial.command("list", "--json"))
    assert len(told["topic_partitions"]) == 1
