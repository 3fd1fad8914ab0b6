"""Commands that show what is in a cluster, by a user with exactly the rights of the table, and with one fewer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from kit.fixtures.guarded import OLDER_VERSION
from kit.rights import SOURCE, feature, renamed
from kit.rights_in_use import LOOKS, Guarded, Trial
from pyspark_kafka._client.client.wire.missing_rights import Right
from pyspark_kafka.testing.jars import DEFAULT_VERSION

# A real broker, though not the shared one that the fixtures' marker is derived from.
_EACH = [pytest.param(key, run, id=key) for key, run in LOOKS]
_REQUIRED = [pytest.param(key, run, right, id=f"{key}, {right}") for key, run in LOOKS for right in feature(key).rights]
_OPTIONAL = [
    pytest.param(key, run, right, id=f"{key}, {right}") for key, run in LOOKS for right in feature(key).optional
]


@pytest.fixture(params=[DEFAULT_VERSION, pytest.param(OLDER_VERSION, marks=pytest.mark.long)])
def guarded(request: pytest.FixtureRequest, guarded_of: Callable[[str], Guarded]) -> Guarded:
    return guarded_of(request.param)


def told(done: Result) -> str:
    return f"{done.exit_code}: {done.output}{done.exception or ''}"


def is_granted_by(line_of: Result, right: Right) -> bool:
    """Return whether an output has the line that grants a right, or a wider one that includes it."""
    operations = {right.operation, "Read"} if right.operation == "Describe" else {right.operation}
    resource = f"--{right.kind} {right.name}".rstrip()
    lines = (f"--allow-principal User:alice --operation {each} {resource}`" for each in operations)
    return any(line in line_of.output for line in lines)


@pytest.mark.parametrize(("key", "run"), _EACH)
def test_command_shows_everything_with_its_rights(
    guarded: Guarded, tmp_path: Path, key: str, run: Callable[[Trial], Result]
) -> None:
    trial, rights = guarded.trial(key, tmp_path)
    guarded.acls.put([*rights, *(renamed(each, trial.names) for each in feature(key).optional)])
    done = run(trial)
    assert done.exit_code == 0, told(done)
    assert "kafka-acls" not in done.output, told(done)


@pytest.mark.parametrize(("key", "run", "left_out"), _REQUIRED)
def test_command_fails_and_names_the_right_that_is_missing(
    guarded: Guarded, tmp_path: Path, key: str, run: Callable[[Trial], Result], left_out: Right
) -> None:
    trial, rights = guarded.trial(key, tmp_path)
    missing = renamed(left_out, trial.names)
    guarded.acls.put(right for right in rights if right != missing)
    done = run(trial)
    assert done.exit_code, told(done)
    if (key, missing.kind) == ("lag-group", "topic"):
        # Brokers do not tell that there is more.
        assert "[NO_POSITIONS]" in done.output
        assert "whether this user may describe the topics that it reads" in done.output
    else:
        assert is_granted_by(done, missing), told(done)


@pytest.mark.parametrize(("key", "run", "left_out"), _OPTIONAL)
def test_command_shows_the_rest_and_names_the_optional_right_that_is_missing(
    guarded: Guarded, tmp_path: Path, key: str, run: Callable[[Trial], Result], left_out: Right
) -> None:
    trial, rights = guarded.trial(key, tmp_path)
    missing = renamed(left_out, trial.names)
    guarded.acls.put([*rights, *(renamed(each, trial.names) for each in feature(key).optional if each != left_out)])
    done = run(trial)
    assert trial.names[SOURCE] in done.stdout, told(done)
    assert is_granted_by(done, missing), told(done)
