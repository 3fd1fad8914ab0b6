"""What an engine does for a stream without admission control, or without the available-now trigger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pyspark_kafka.connector import MicroBatchStream, Offset, ReadAllAvailable, ReadMaxRows, SupportsAdmissionControl
from pyspark_kafka.connector.engine.available_now import admission_control_of
from pyspark_kafka.errors import ContractError


@dataclass(frozen=True)
class At(Offset):
    number: int

    def json(self) -> str:
        return str(self.number)


class Stream(MicroBatchStream):
    """A stream that ends where the test says."""

    initialOffset = deserializeOffset = planInputPartitions = createReaderFactory = commit = stop = None  # type: ignore[assignment]
    end = At(10)

    def latestOffset(self, *_: Any) -> Offset:
        return self.end


class Limited(Stream, SupportsAdmissionControl):
    """A stream that the engine can limit."""

    def getDefaultReadLimit(self) -> ReadMaxRows:
        return ReadMaxRows(3)

    def latestOffset(self, start: Any, limit: Any) -> Offset:
        return self.end if limit == ReadAllAvailable() else At(min(10, start.number + limit.max_rows))


def test_stream_without_admission_control_is_read_to_its_end() -> None:
    control = admission_control_of(Stream())
    assert control.getDefaultReadLimit() == ReadAllAvailable()
    assert control.latestOffset(At(0), ReadMaxRows(1)) == At(10)
    assert control.reportLatestOffset() is None


def test_stream_without_latest_offset_raises_its_contract() -> None:
    class Forgetful(Stream):
        latestOffset = MicroBatchStream.latestOffset

    with pytest.raises(ContractError, match=r"Forgetful.latestOffset\(\) must be implemented"):
        admission_control_of(Forgetful()).latestOffset(At(0), ReadAllAvailable())


def test_limits_of_a_stream_are_its_own() -> None:
    control = admission_control_of(Limited())
    assert control.getDefaultReadLimit() == ReadMaxRows(3)
    assert control.latestOffset(At(0), ReadMaxRows(3)) == At(3)


@pytest.mark.parametrize("stream", [Stream(), Limited()])
def test_available_now_ends_at_the_end_of_the_first_look_up(stream: Stream) -> None:
    control = admission_control_of(stream)
    control.prepareForTriggerAvailableNow()
    assert control.latestOffset(At(0), control.getDefaultReadLimit()) == At(10)
    stream.end = At(99)
    assert control.latestOffset(At(10), control.getDefaultReadLimit()) == At(10)
