"""The headers that say where a dead letter comes from and what was wrong with it. Pure.

All values are text. Sources: Kafka Connect `DeadLetterQueueReporter` (KIP-298), Kafka Streams `ExceptionHandlerUtils`
(KIP-1034). Of theirs the stack trace is left out: it may be large, and may repeat what records hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pyspark_kafka._connector.spark.dead_letters.sql import is_topic, text
from pyspark_kafka.errors import OptionError

HeaderStyle: TypeAlias = Literal["connect", "streams"]

# What a message keeps, in bytes of UTF-8.
MAX_MESSAGE = 1024


@dataclass(frozen=True, slots=True)
class ErrorHeaders:
    """The names of the headers in one style.

    Attributes:
        prefix: what all begin with.
        reason: the kind of fault, after the prefix.
        message: the fault in words, after the prefix.
        stage: whether the key or the value is bad; None: the style has no such header.
        program: what met the fault; None: the style has no such header.
    """

    prefix: str
    reason: str
    message: str
    stage: str | None = None
    program: str | None = None

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Return the names of the headers that say which record it was. The last one is ours."""
        return tuple(self.prefix + name for name in ("topic", "partition", "offset", "timestamp"))

    def value_of(self, headers: str, name: str) -> str:
        """Return SQL for the text of a header, null if there is none.

        Args:
            headers: SQL for all headers of a row.
            name: after the prefix. Of several the first counts.
        """
        found = f"get(filter({headers}, each -> each.`key` = {text(self.prefix + name)}), 0).`value`"
        return f"make_valid_utf8(CAST({found} AS STRING))"

    def without(self, headers: str) -> str:
        """Return SQL for the headers of a row that are not of this style."""
        return f"filter({headers}, each -> NOT startswith(each.`key`, {text(self.prefix)}))"

    def without_fault(self, headers: str) -> str:
        """Return SQL for the headers of a row without the headers of an earlier fault; its coordinates stay."""
        kept = ", ".join(map(text, self.coordinates))
        begins = f"startswith(each.`key`, {text(self.prefix)})"
        return f"filter({headers}, each -> NOT {begins} OR each.`key` IN ({kept}))"

    def has_origin(self, headers: str) -> str:
        """Return SQL for whether the headers of a row name a topic that it comes from."""
        return f"coalesce({is_topic(self.value_of(headers, 'topic'))}, false)"

    def origin(self, *, timestamp: bool) -> str:
        """Return SQL for headers with the place of a row, and its time in milliseconds since 1970."""
        values = ["`topic`", "CAST(`partition` AS STRING)", "CAST(`offset` AS STRING)"]
        values += ["CAST(unix_millis(`timestamp`) AS STRING)"] if timestamp else []
        return _array(list(zip(self.coordinates, values, strict=False)))

    def fault(self, corrupt: str) -> str:
        """Return SQL for headers that tell the fault.

        Args:
            corrupt: SQL for the corrupt column.
        """
        # A cut character ends in replacements of invalid UTF-8: they are taken away.
        cut = f"substring(CAST({corrupt}.`message` AS BINARY), 1, {MAX_MESSAGE})"
        replaced = "CAST(X'EFBFBD' AS STRING)"
        message = f"trim(TRAILING {replaced} FROM make_valid_utf8(CAST({cut} AS STRING)))"
        values = []
        if self.stage is not None:
            stage = f"IF({corrupt}.`column` = 'key', 'KEY_CONVERTER', 'VALUE_CONVERTER')"
            values.append((self.prefix + self.stage, stage))
        if self.program is not None:
            values.append((self.prefix + self.program, "'pyspark_kafka'"))
        values.append((self.prefix + self.reason, f"{corrupt}.`reason`"))
        values.append((self.prefix + self.message, f"coalesce({message}, '')"))
        return _array(values)


def _array(values: list[tuple[str, str]]) -> str:
    each = [f"named_struct('key', {text(name)}, 'value', CAST({value} AS BINARY))" for name, value in values]
    return f"array({', '.join(each)})"


_STYLES: dict[str, ErrorHeaders] = {
    "connect": ErrorHeaders(
        "__connect.errors.", "exception.class.name", "exception.message", stage="stage", program="class.name"
    ),
    "streams": ErrorHeaders("__streams.errors.", "exception", "message"),
}


def error_headers(style: str) -> ErrorHeaders:
    """Return the headers of a style.

    Raises:
        OptionError: there is no such style.
    """
    if style not in _STYLES:
        raise OptionError(
            f"Argument 'headers' is {style!r}, and must be 'connect' or 'streams'. Nothing was read or written.",
            condition="OPTION_INVALID",
            hint='Use "connect" for the names of Kafka Connect, "streams" for the names of Kafka Streams.',
        )
    return _STYLES[style]
