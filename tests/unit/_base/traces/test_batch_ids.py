"""The trace id that the processes of a micro-batch share."""

from __future__ import annotations

from pyspark_kafka._base.traces.batch_ids import batch_trace_id


def test_trace_id_is_the_same_in_every_process_and_differs_by_run_and_batch() -> None:
    assert batch_trace_id("run", 3) == batch_trace_id("run", "3")
    ids = {batch_trace_id(run, batch) for run in ("run", "other") for batch in range(5)}
    assert len(ids) == 10
    assert all(0 < found < 2**128 for found in ids)
