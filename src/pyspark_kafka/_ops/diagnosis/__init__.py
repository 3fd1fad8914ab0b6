"""Diagnosis: checks a connection step by step, on the driver and on a worker, and names what to change.

Entry point: `api.check`, which users call as `pyspark_kafka.check`; `pyspark-kafka check` shows what it finds.

- `context`: what the steps share; `findings`: what they find; `side_by_side`: several servers at the same time.
- `steps/`: the steps. `run`: their order and time. `worker`: the same in a task. `api`: all of it.

Invariant: nothing on the cluster is changed, a failure is a finding, and no secret is in one. Layer: above spark.
"""

from pyspark_kafka._ops.diagnosis.api import check
from pyspark_kafka._ops.diagnosis.findings import Diagnosis, Finding, FindingStatus

__all__ = ["Diagnosis", "Finding", "FindingStatus", "check"]
