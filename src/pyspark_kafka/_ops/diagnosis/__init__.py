"""Diagnosis: checks a connection step by step, on the driver and in tasks, and names what to change.

Entry point: `api.check`, the whole check, which users call as `pyspark_kafka.check`.

- `context`: what the steps share; `findings`: their findings; `side_by_side`: several servers at the same time.
- `steps/`: the steps. `run`: their order and time. `worker`: the same in a task.
- `executors`: a task on each executor, whose side is `on_executor`; `driver_port`: whether executors reach the driver.

Invariant: nothing on the cluster is changed, a failure is a finding, and no secret is in one.
"""

from pyspark_kafka._ops.diagnosis.api import check
from pyspark_kafka._ops.diagnosis.findings import Diagnosis, Finding, FindingStatus

__all__ = ["Diagnosis", "Finding", "FindingStatus", "check"]
