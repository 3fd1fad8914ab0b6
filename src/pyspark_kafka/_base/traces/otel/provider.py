"""The provider of tracers of this process: its program's, or one of this package.

Nobody configures OpenTelemetry in the Python processes that Spark starts. So this package makes a provider there, of
the same variables of the environment that configure it everywhere: `OTEL_TRACES_EXPORTER`, `OTEL_SERVICE_NAME`,
`OTEL_EXPORTER_OTLP_ENDPOINT` and so on. It is not the global provider: functions of users keep theirs.
"""

from __future__ import annotations

import logging
import os
import threading
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, NamedTuple

from opentelemetry import trace as api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LOG = logging.getLogger(__name__)

_EXPORTERS, _DISABLED = "OTEL_TRACES_EXPORTER", "OTEL_SDK_DISABLED"
_DELAY_MS = "OTEL_BSP_SCHEDULE_DELAY"
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_GROUP = "opentelemetry_traces_exporter"
_OTLP = "otlp"
_BY_PROTOCOL = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}


class Provider(NamedTuple):
    """A provider of tracers.

    Attributes:
        tracers: of the API.
        flush: waits for its exporters, for at most a number of milliseconds.
        ids: chooses trace ids; None for the provider of a program.
    """

    tracers: api.TracerProvider
    flush: Callable[[int], object]
    ids: Any | None = None


def find_provider(allow: Callable[[str], None]) -> Provider:
    """Return a provider of this process, which is to be kept: the program's, if it has one.

    Args:
        allow: raises if an administrator does not allow the exporter of a name.
    """
    given = api.get_tracer_provider()
    if not isinstance(given, api.ProxyTracerProvider):
        return Provider(given, _GivenFlush(given))
    names = exporter_names(os.environ)
    for name in names:
        allow(name)
    try:
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - another package than the API

        from pyspark_kafka._base.traces.otel.export_queue import DELAY_S, ExportQueue  # noqa: PLC0415 - needs the SDK
        from pyspark_kafka._base.traces.otel.trace_ids import ChosenTraceIds  # noqa: PLC0415 - needs the SDK
    except ImportError:
        _LOG.warning(
            "Spans of this process are not recorded: the package 'opentelemetry-sdk' cannot be imported here, and "
            "nobody has configured another provider. The query is not affected."
        )
        return Provider(api.NoOpTracerProvider(), lambda _: None)
    ids = ChosenTraceIds()
    # No handler at the end of the process: it would wait for exporters.
    provider = TracerProvider(shutdown_on_exit=False, id_generator=ids)
    for exporter in _exporters(names):
        provider.add_span_processor(ExportQueue(exporter, delay_s=_seconds(os.environ.get(_DELAY_MS), DELAY_S)))
    return Provider(provider, provider.force_flush, ids)


def exporter_names(environment: Any) -> list[str]:
    """Return the names of the exporters that the variables of an environment ask for; pure.

    Without a name it is the exporter of OpenTelemetry's own protocol, as for other programs.
    """
    if environment.get(_DISABLED, "").strip().lower() == "true":
        return []
    named = [name.strip() for name in environment.get(_EXPORTERS, "").split(",") if name.strip()] or [_OTLP]
    return [name for name in dict.fromkeys(named) if name != "none"]


def _seconds(milliseconds: str | None, default: float) -> float:
    try:
        return max(0.0, float(milliseconds or "") / 1_000)
    except ValueError:
        return default


def _exporters(names: list[str]) -> Iterator[Any]:
    known = {entry.name: entry for entry in entry_points(group=_GROUP)}
    for name in names:
        protocol = next((os.environ[each].strip() for each in _PROTOCOLS if os.environ.get(each)), "")
        found = name
        if name == _OTLP:
            wanted = [_BY_PROTOCOL.get(protocol, protocol)] if protocol else list(_BY_PROTOCOL.values())
            found = next((each for each in wanted if each in known), name)
        try:
            yield known[found].load()()
        except Exception as error:  # noqa: BLE001 - of code that is not ours; the query must not notice
            reason = "it is not installed" if isinstance(error, KeyError) else f"it fails: {type(error).__name__}"
            _LOG.warning(
                "Spans of this process do not reach the exporter '%s': %s. The query is not affected. Set %s to an "
                "exporter that is installed here, such as the one of opentelemetry-exporter-otlp-proto-http.",
                *(name, reason, _EXPORTERS),
            )


class _GivenFlush:
    """Waits for the exporters of a program's provider, whose own time limit may have no effect.

    One flush at a time, on a thread of its own; while one lasts longer than its time limit, nobody waits again.
    """

    def __init__(self, provider: Any) -> None:
        self._flush = getattr(provider, "force_flush", None)
        self._running: threading.Thread | None = None

    def __call__(self, timeout_ms: int) -> None:
        if self._flush is None or (self._running is not None and self._running.is_alive()):
            return
        self._running = threading.Thread(target=self._run, args=(timeout_ms,), name="pyspark-kafka-spans", daemon=True)
        self._running.start()
        self._running.join(timeout_ms / 1000)

    def _run(self, timeout_ms: int) -> None:
        try:
            self._flush(timeout_ms)  # type: ignore[misc]
        except Exception:  # noqa: BLE001 - of code that is not ours; the query must not notice
            _LOG.debug("A flush of spans failed.", exc_info=True)
