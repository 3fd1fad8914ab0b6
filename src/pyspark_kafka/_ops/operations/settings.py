"""The options of any kinds of query, resolved, and the topics that they name. Pure.

A user has the options of a reader, of a writer, or both in one file; each is resolved as the query would resolve it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.model import IsolationLevel
from pyspark_kafka._client.options import (
    OPTIONS,
    Scope,
    parse_read_options,
    parse_write_options,
)
from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._client.options import BatchReadOptions, ConnectionOptions, StreamReadOptions, WriteOptions

_READS = frozenset({Scope.BATCH_READ, Scope.STREAM_READ})
_WRITES = frozenset({Scope.BATCH_WRITE, Scope.STREAM_WRITE})
_SUBSCRIPTIONS = ("subscribe", "subscribepattern", "assign")
_WRITING = ("topic", "deliveryguarantee")
_ISOLATION = "kafka.isolation.level"


@dataclass(frozen=True, slots=True)
class Settings:
    """Resolved options.

    Attributes:
        connection: the connection to the cluster.
        read: the options of a reader; None without a subscription.
        write: the options of a writer; None without an option of writers only.
        topics: further topics.
        notes: the notes of the options for the user's log.
        isolation_level: what counts as the end of a log, also without a subscription.
        unused: the options of readers that were left out, because there is no subscription.
    """

    connection: ConnectionOptions
    read: BatchReadOptions | StreamReadOptions | None = None
    write: WriteOptions | None = None
    topics: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    unused: tuple[str, ...] = ()

    def with_time(self, step_ms: float) -> Settings:
        """Return the settings with request timeouts of at most the time of a step."""
        given = self.connection
        limited = replace(
            given,
            connect_timeout_ms=int(min(given.connect_timeout_ms, step_ms)),
            request_timeout_ms=int(min(given.request_timeout_ms, step_ms)),
            api_timeout_ms=int(min(given.api_timeout_ms, step_ms)),
        )
        return replace(self, connection=limited)


def with_prefixes(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by the names of the catalogue: properties of Kafka clients may lack their prefix `kafka.`.

    Example:
        >>> with_prefixes({"bootstrap.servers": "a:1", "topic": "t"})
        {'kafka.bootstrap.servers': 'a:1', 'topic': 't'}
    """
    return {
        f"kafka.{name.strip()}"
        if OPTIONS.get(name.strip()) is None and OPTIONS.get(f"kafka.{name.strip()}")
        else name: value
        for name, value in raw.items()
    }


def resolve_settings(raw: Mapping[str, Any], topics: tuple[str, ...] = ()) -> Settings:
    """Resolve the options of a reader, of a writer, or of both together.

    Options of readers are left out for a writer, and the reverse; the isolation level has a meaning without a
    subscription, too. Unknown names are refused.

    Args:
        raw: options as Spark takes them; the prefix `kafka.` may be missing.
        topics: further topics to look at.

    Raises:
        OptionError: with the problems for all kinds of query together.
    """
    given = with_prefixes(raw)
    names = {name.strip().lower() for name in given}
    reads = any(name in names for name in _SUBSCRIPTIONS)
    writes = any(name in names for name in _WRITING) or not reads
    problems: dict[tuple[str, str], OptionError] = {}
    read: Any = None
    write: Any = None
    if reads:
        try:
            read = parse_read_options(_without(given, _WRITES))
        except OptionError as error:
            problems |= _problems(error)
    elif (level := _isolation_level(given)) is not None:
        try:
            read = parse_read_options(level)
        except OptionError as error:
            problems |= _problems(error)
    isolation_level = IsolationLevel.READ_UNCOMMITTED if read is None else read.fetch.isolation_level
    read = read if reads else None
    if writes:
        try:
            # Unknown names were refused with the options of the reader.
            write = _parse_write(_without(given, _READS, unknown=not reads))
        except OptionError as error:
            problems |= _problems(error)
    if problems:
        (first, *others) = problems.values()
        if not others:
            raise first
        raise OptionError(
            " ".join(f"({number}) {message}" for number, (message, _) in enumerate(problems, 1)),
            condition="OPTIONS_INVALID",
            hint="Correct all of them.",
            problems=list(problems),
        )
    found = read if read is not None else write
    only_connects = not reads and not any(name in names for name in _WRITING)
    notes = dict.fromkeys(note for each in (read, write) if each is not None for note in each.notes)
    unused = () if reads else _of_readers_only(given)
    return Settings(
        found.connection, read, None if only_connects else write, topics, tuple(notes), isolation_level, unused
    )


def _isolation_level(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the isolation level as the options of a read that has no other ones; None if it is not set."""
    found = {name: value for name, value in given.items() if name.strip().lower() == _ISOLATION}
    return {"kafka.bootstrap.servers": "unused:1", "subscribe": "unused", **found} if found else None


def _of_readers_only(given: Mapping[str, Any]) -> tuple[str, ...]:
    kept = _without(given, _READS)
    return tuple(name for name in given if name not in kept and name.strip().lower() != _ISOLATION)


def _parse_write(given: Mapping[str, Any]) -> WriteOptions:
    """Resolve the options of a writer as a batch, or as a stream if they are only valid for a stream."""
    try:
        return parse_write_options(given, streaming=False)
    except OptionError as for_batch:
        try:
            return parse_write_options(given, streaming=True)
        except OptionError:
            raise for_batch from None


def _without(given: Mapping[str, Any], scopes: frozenset[Scope], *, unknown: bool = True) -> dict[str, Any]:
    """Return the options without options that only these kinds of query have; keep or drop unknown options."""
    kept = {}
    for name, value in given.items():
        option = OPTIONS.get(name.strip())
        has_meaning = frozenset[Scope]() if option is None else option.scopes | option.no_effect_in
        # An option without any meaning is refused as well.
        if unknown if option is None else not has_meaning or has_meaning - scopes:
            kept[name] = value
    return kept


def _problems(error: OptionError) -> dict[tuple[str, str], OptionError]:
    return dict.fromkeys(error.problems or ((error.message, error.hint),), error)
