"""The figures for OpenTelemetry: observable instruments on the program's meter provider."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pyspark_kafka._ops.metrics.export.families import Histogram, Kind
from pyspark_kafka._ops.metrics.listener import listen
from pyspark_kafka.errors import MissingDependencyError
from pyspark_kafka.version import __version__, install_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from pyspark_kafka._ops.metrics.export.exporter import Exporter
    from pyspark_kafka._ops.metrics.export.families import Family

_PREFIX = "pyspark_kafka"
_UNITS = {"seconds": "s", "bytes": "By"}


class OpenTelemetryMetrics:
    """Instruments whose values are computed when a reader of the provider collects, until `stop()`.

    Runs on: driver, or the client of Spark Connect; the thread of the reader. Waits for nobody.

    Args:
        exporter: what is shown.
        meter: of the program's provider.
        observation: the class of OpenTelemetry's observations.
    """

    def __init__(self, exporter: Exporter, meter: Any, observation: Any) -> None:
        self._exporter = exporter
        self._observation = observation
        self._lock = threading.Lock()
        self._stopped = False
        # The families of one collection, and the names of the requested families.
        self._families: dict[str, Family] = {}
        self._asked: set[str] = set()
        exporter.start()
        for family in exporter.known():
            is_sum = family.kind is not Kind.GAUGE
            create = meter.create_observable_counter if is_sum else meter.create_observable_gauge
            unit = _UNITS.get(family.unit, family.unit)
            create(instrument_name(family), callbacks=[self._callback(family.name)], unit=unit, description=family.help)

    def stop(self) -> None:
        """Observe nothing any more; the instruments stay, as OpenTelemetry cannot remove any. Safe to repeat."""
        self._stopped = True
        self._exporter.stop()
        with _LOCK:
            for key, (_, shown) in list(_SHOWN.items()):
                if shown is self:
                    del _SHOWN[key]

    def _callback(self, name: str) -> Callable[[Any], Iterator[Any]]:
        def observe(_: Any) -> Iterator[Any]:
            family = None if self._stopped else self._take(name)
            if family is None:
                return
            for labels, value in family.samples.items():
                number = value.total if isinstance(value, Histogram) else value
                yield self._observation(number, dict(zip(family.labels, labels, strict=True)))

        return observe

    def _take(self, name: str) -> Family | None:
        """Return a family.

        The first family that is requested twice starts a new collection, which computes all of them.
        """
        with self._lock:
            if name in self._asked or not self._asked:
                self._families = {each.name: each for each in self._exporter.now()}
                self._asked = set()
            self._asked.add(name)
            return self._families.get(name)


def instrument_name(family: Family) -> str:
    """Return the name of a family's instrument: without its unit, and with a dot behind the package's name.

    Prometheus' own exporter of OpenTelemetry makes the family's name of it again.
    """
    name = family.name.removesuffix(f"_{family.unit}") if family.unit else family.name
    return f"{_PREFIX}.{name.removeprefix(f'{_PREFIX}_')}"


_LOCK = threading.Lock()
# By provider, which the entry keeps: there is no way to take instruments back.
_SHOWN: dict[int, tuple[Any, OpenTelemetryMetrics]] = {}


def observe(session: SparkSession, exporter: Exporter, meter_provider: Any = None) -> OpenTelemetryMetrics:
    """Have the figures observed; see `pyspark_kafka.metrics.opentelemetry`."""
    try:
        from opentelemetry import metrics as api  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingDependencyError(
            "Exporter for OpenTelemetry need the Python package 'opentelemetry-api', which cannot be imported. Queries "
            "are not affected.",
            condition="MISSING_DEPENDENCY",
            hint=f"Install it where this program runs: {install_command('otel')}.",
            parameters={"package": "opentelemetry-api"},
        ) from error
    listen(session)
    provider = api.get_meter_provider() if meter_provider is None else meter_provider
    with _LOCK:
        if id(provider) not in _SHOWN:
            meter = provider.get_meter(_PREFIX, __version__)
            _SHOWN[id(provider)] = provider, OpenTelemetryMetrics(exporter, meter, api.Observation)
        return _SHOWN[id(provider)][1]
