"""The checks of a task on its executor. The first function needs only Python there, the second this package."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka._ops.diagnosis.driver_port import ask_driver
from pyspark_kafka._ops.diagnosis.run import check_here
from pyspark_kafka._ops.diagnosis.steps.packages import PACKAGES, installed_extras, packages_probe

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._ops.operations.settings import Settings


@dataclass(frozen=True, slots=True)
class Errand:
    """The settings of a task's checks.

    Attributes:
        settings: the options; None if they are not valid: then no request is sent.
        timeout_ms: for all steps.
        step_ms: for one step.
        driver: host, port and key of the driver; None if it cannot listen.
    """

    settings: Settings | None
    timeout_ms: float
    step_ms: float
    driver: tuple[str, int, bytes] | None


def executor_probe(look: Callable[[], str] | None = None) -> Callable[[object], str]:
    """Return a function that describes the executor that it runs on, as JSON.

    A function within a function is pickled with its code: it runs in a Python that lacks this package as well.

    Args:
        look: returns further facts as JSON; None: it describes the packages only.
    """
    describe = packages_probe(PACKAGES)

    def probe(anything: object) -> str:
        import json  # noqa: PLC0415 - nothing of this module is there on an executor
        import os  # noqa: PLC0415
        import time  # noqa: PLC0415

        # The process that forks the workers: there is one for each executor.
        told = {**json.loads(describe(anything)), "process": os.getppid()}
        if look is not None:
            told.update(json.loads(look()))
        # The slot stays taken until the other tasks have started: none of them comes here as well.
        time.sleep(0.3)
        return json.dumps(told)

    return probe


def errand_probe(errand: Errand) -> Callable[[object], str]:
    """Return a function that does an errand on the executor that it runs on, and describes both as JSON."""

    def look() -> str:
        from pyspark_kafka._ops.diagnosis.on_executor import look_around  # noqa: PLC0415 - imported where it runs

        return look_around(errand)

    return executor_probe(look)


def look_around(errand: Errand) -> str:
    """Do an errand, and return what was found as JSON.

    Runs on: executor; blocks, at most for about the time of the errand.
    """
    from pyspark_kafka.records import codec_info  # noqa: PLC0415 - loads the codec

    found: dict[str, Any] = {"compiled": codec_info().compiled, "extras": installed_extras(), "findings": []}
    if errand.driver is not None:
        found["driver"] = ask_driver(*errand.driver, errand.step_ms / 1000)
    if errand.settings is not None:
        judged = check_here(errand.settings, errand.timeout_ms, errand.step_ms)
        found["findings"] = [finding.to_json() for finding in judged]
    return json.dumps(found)
