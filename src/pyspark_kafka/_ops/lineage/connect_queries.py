"""The queries of a Spark Connect client, seen in its own requests: the server reports no plans.

PySpark has no listener for them. All requests of a client that run something pass one method of it, which is replaced
in the object of one session. A PySpark without this method has events of continuous queries only.
"""

from __future__ import annotations

import logging
import threading
import weakref
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pyspark_kafka._ops.lineage.datasets import columns_of
from pyspark_kafka._ops.lineage.plans.connect_plans import query_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from pyspark_kafka._ops.lineage.plans.connect_plans import ConnectQuery
    from pyspark_kafka._ops.lineage.values import DatasetColumn

_LOG = logging.getLogger("pyspark_kafka.lineage")

_R = TypeVar("_R")

_METHOD = "_execute_and_fetch_as_iterator"
# How long the end of a stream waits for the report about it.
_REPORT_S = 2.0
_MAX_HELD = 1_000
_MAX_SCHEMAS = 100


@dataclass
class ConnectRun:
    """The run of a query, as far as the client sees it.

    Attributes:
        query: of the request.
        columns: returns the columns of a relation; may block.
        began: when the request was sent.
        metrics: of the physical plan of a batch.
    """

    query: ConnectQuery
    columns: Callable[[Any], tuple[DatasetColumn, ...]]
    began: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    metrics: list[Any] = field(default_factory=list)


class Follower(Protocol):
    """Follows the queries of a client; its methods must neither block nor raise."""

    def connect_stream_started(self, run: ConnectRun, run_id: str) -> None:
        """Note that a streaming query has started."""

    def connect_batch_ended(self, run: ConnectRun, error: BaseException | None) -> None:
        """Note that a batch query has ended."""


class ConnectQueries:
    """Reports the queries of a session's client to a follower.

    Reports of Spark about a stream may come before the response that names its run, so they are held back until then.

    Args:
        follower: is not kept alive by the client.
    """

    def __init__(self, follower: Follower) -> None:
        self._follower = weakref.ref(follower)
        self._changed = threading.Condition()
        self._starting = 0
        self._running: set[str] = set()
        self._held: list[Callable[[], None]] = []

    def join(self, session: Any) -> bool:
        """Begin to report; return whether that is possible. Safe to repeat; without effect on classic Spark."""
        if hasattr(session, "_jsparkSession"):
            return True
        client = getattr(session, "client", None)
        execute = getattr(client, _METHOD, None)
        if execute is None:
            return False
        # Of a listener that is gone; never one around another.
        plain = execute.execute if isinstance(execute, _Followed) else execute
        setattr(client, _METHOD, _Followed(plain, weakref.ref(self), _columns_by(client)))
        return True

    def leave(self, session: Any) -> None:
        """Report no more."""
        client = None if hasattr(session, "_jsparkSession") else getattr(session, "client", None)
        if client is not None and isinstance(vars(client).get(_METHOD), _Followed):
            delattr(client, _METHOD)

    def after_starts(self, call: Callable[[], None]) -> None:
        """Call now, or after the requests in flight that start streams."""
        with self._changed:
            if not self._starting or len(self._held) >= _MAX_HELD:
                call()
            else:
                self._held.append(call)

    def stream_ended(self, run_id: str) -> None:
        """Note that Spark has reported the end of a run."""
        with self._changed:
            self._running.discard(run_id)
            self._changed.notify_all()

    def follow(self, run: ConnectRun, items: Generator[Any, None, None]) -> Iterator[Any]:
        """Yield the items of a response, and report what they say."""
        error: BaseException | None = None
        _unnoticed(self._begin, run)
        try:
            # What closes the one closes the other.
            with closing(items):
                for item in items:
                    _unnoticed(self._note, run, item)
                    yield item
        except GeneratorExit:
            raise
        except BaseException as raised:
            error = raised
            raise
        finally:
            _unnoticed(self._end, run, error)

    def follow_end(self, command: Any, items: Generator[Any, None, None]) -> Iterator[Any]:
        """Yield the items of a response about a stream. If it has ended, wait a moment for Spark's report about that.

        The program may end next, and reports come no more.
        """
        is_over = command.WhichOneof("command") == "stop"
        try:
            with closing(items):
                for item in items:
                    is_over = is_over or _is_terminated(item)
                    yield item
        except Exception:
            is_over = is_over or command.WhichOneof("command") == "await_termination"
            raise
        finally:
            if is_over:
                with self._changed:
                    self._changed.wait_for(lambda: command.query_id.run_id not in self._running, _REPORT_S)

    def _begin(self, run: ConnectRun) -> None:
        if run.query.is_stream:
            with self._changed:
                self._starting += 1

    def _note(self, run: ConnectRun, item: Any) -> None:
        if not run.query.is_stream:
            if hasattr(item, "metrics") and hasattr(item, "plan_id"):
                run.metrics.append(item)
            return
        started = item.get("write_stream_operation_start_result") if isinstance(item, dict) else None
        follower = self._follower()
        if started is not None and follower is not None:
            run_id = str(started.query_id.run_id)
            with self._changed:
                self._running.add(run_id)
            follower.connect_stream_started(run, run_id)

    def _end(self, run: ConnectRun, error: BaseException | None) -> None:
        if not run.query.is_stream:
            follower = self._follower()
            if follower is not None:
                follower.connect_batch_ended(run, error)
            return
        with self._changed:
            self._starting -= 1
            held = [] if self._starting else self._held
            for call in held:
                call()
            held.clear()


class _Followed:
    """The method of the client that runs a request, and returns a generator."""

    def __init__(self, execute: Any, queries: weakref.ref[ConnectQueries], columns: Any) -> None:
        self.execute, self._queries, self._columns = execute, queries, columns

    def __call__(self, *args: Any, **named: Any) -> Any:
        items = self.execute(*args, **named)
        return _unnoticed(self._follow, items, *args) or items

    def _follow(self, items: Any, request: Any, *_: Any) -> Any:
        queries, command = self._queries(), request.plan.command
        if queries is None:
            return None
        if command.WhichOneof("command_type") == "streaming_query_command":
            return queries.follow_end(command.streaming_query_command, items)
        query = query_of(request.plan)
        return None if query is None else queries.follow(ConnectRun(query, self._columns), items)


def _is_terminated(item: Any) -> bool:
    result = item.get("streaming_query_command_result") if isinstance(item, dict) else None
    return result is not None and bool(result.await_termination.terminated)


def _unnoticed(call: Callable[..., _R], *args: Any) -> _R | None:
    """Call a function whose failure the query must not notice."""
    try:
        return call(*args)
    except Exception:  # noqa: BLE001 - logged
        _LOG.warning("Lineage: a request of Spark Connect cannot be followed; it is ignored.", exc_info=True)
        return None


def _columns_by(client: Any) -> Callable[[Any], tuple[DatasetColumn, ...]]:
    """Return a function that asks the server for the columns of a relation, once for equal relations."""
    own = weakref.ref(client)

    @lru_cache(_MAX_SCHEMAS)
    def known(relation: bytes) -> tuple[DatasetColumn, ...]:
        # Needs gRPC, which classic Spark runs without.
        from pyspark.sql.connect import proto  # noqa: PLC0415

        asked = own()
        if asked is None:
            return ()
        plan = proto.Plan()
        plan.root.ParseFromString(relation)
        return columns_of(asked.schema(plan).jsonValue())

    def columns(relation: Any) -> tuple[DatasetColumn, ...]:
        try:
            return known(relation.SerializeToString(deterministic=True))
        except Exception:  # noqa: BLE001 - such as a refused query, whose event has no columns
            _LOG.debug("Lineage: the columns of a relation are not known.", exc_info=True)
            return ()

    return columns
