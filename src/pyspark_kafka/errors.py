"""The exception tree: every error that leaves this package is one of these.

An error often crosses from a Python worker to the JVM as text, and its attributes are lost there. So the text holds
all facts: a stable condition, the failure, its place, the expected and the found value, the fate of the data, a hint,
and at its end the address of the condition's entry in the documentation. Secrets never enter an error.

`errors.md` beside this module is the table of conditions; docs/errors.md is its page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from traceback import extract_tb
from typing import Any, TypeVar

from pyspark_kafka.version import DOCUMENTATION, entry_address

__all__ = [
    "AccessError",
    "BrokerError",
    "CallError",
    "CapabilityError",
    "CheckpointError",
    "CommitConflictError",
    "ConnectorError",
    "ContinuousQueryError",
    "ContractError",
    "CorruptRecordsError",
    "DataLossError",
    "DeadlineError",
    "DeliveryError",
    "MissingDependencyError",
    "OptionError",
    "PartitionError",
    "PlanningError",
    "ProtocolError",
    "RecordError",
    "RegistryError",
    "RetryError",
    "SchemaError",
    "SetupError",
    "StateError",
    "TransportError",
]
__dir__ = __all__.copy

_T = TypeVar("_T")

# The maximum number of things that an error or a line of the log lists by name.
MAX_LISTED = 20
# Tracebacks of users' functions have several lines. Texts of brokers have one: `broker_error`.
_LINES = "\n\t"
# Of an error for another process: its message, and one of its parameters.
_MAX_TEXT, _MAX_PARAMETER = 64_000, 4_000
_IN_TRACEBACK = re.compile(rf"^{re.escape(__name__)}\.(\w+): \[([A-Z0-9_.]+)\] (.*)$", re.MULTILINE)
# The end of another error's text, within the message of this one.
_SEE_ENTRY = re.compile(rf" See {re.escape(DOCUMENTATION)}errors/#\w+")


def listed(things: Sequence[_T], describe: Callable[[_T], str] = str, *, separator: str = ", ", noun: str = "") -> str:
    """Return the first things as text, and the number of the others: `a, b and 3 more partitions`.

    Args:
        things: all of them, in the order to name them.
        describe: the text of one.
        separator: between two things; if it is not a comma, also before the number.
        noun: the noun after the number.
    """
    text = separator.join(map(describe, things[:MAX_LISTED]))
    if len(things) <= MAX_LISTED:
        return text
    more = f"and {len(things) - MAX_LISTED} more {noun}".rstrip()
    return f"{text} {more}" if separator == ", " else f"{text}{separator}{more}"


def printable(text: str, kept: str = "") -> str:
    r"""Return a foreign text in a form that is safe in logs and terminals: unprintable characters as escapes.

    A broker, a file or a record must not end a line of a log, or move the cursor of a terminal.

    Args:
        text: any.
        kept: characters that stay although they are not printable.

    Example:
        >>> printable("no\n26/11/22 ERROR \x1b[31m")
        'no\\n26/11/22 ERROR \\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in kept else each.encode("unicode_escape").decode() for each in text
    )


def read_table() -> str:
    """Return the table of conditions, also from a package in an archive."""
    from pkgutil import get_data  # noqa: PLC0415 - only for a text: tasks that succeed do not need it

    return (get_data(__name__.partition(".")[0], "errors.md") or b"").decode()


@cache
def _entries() -> frozenset[str]:
    return frozenset(re.findall(r"^\| `([A-Z0-9_.]+)` \|", read_table(), re.MULTILINE))


class ConnectorError(Exception):
    """The base of all errors of this package.

    Attributes:
        condition: stable code, upper case, dotted: `KAFKA_DATA_LOSS.PARTITIONS_DELETED`. It begins the text.
        retriable: whether the same call may succeed later with nothing changed by the user.
        parameters: the values the text names (topic, partition, option …), as strings.
    """

    def __init__(
        self,
        message: str,
        *,
        condition: str,
        hint: str = "",
        retriable: bool = False,
        parameters: Mapping[str, object] | None = None,
    ) -> None:
        """Build the text `[condition] message Hint: hint See address`, without control characters.

        The message may have several lines; the values that it names, which are often foreign, end none. A condition
        that is not in the table, such as one of a connector of one's own, has no address.
        """
        for value in map(str, (parameters or {}).values()):
            if "\n" in value.strip("\n"):
                message = message.replace(value, printable(value))
        self.message = _cleaned(message)
        self.hint = _cleaned(hint)
        super().__init__(_text(condition, self.message, self.hint))
        self.condition = condition
        self.retriable = retriable
        self.parameters = {name: printable(str(value), _LINES) for name, value in (parameters or {}).items()}

    def located(self, where: str) -> ConnectorError:
        """Return the same error, of the same class, with `where` before its message.

        For a layer that knows the place (topic-partition, range, broker) of a failure in a lower layer. The caller
        raises the result `from` this error.
        """
        return self.with_message(f"{where}: {self.message}")

    def with_message(self, message: str) -> ConnectorError:
        """Return the same error, of the same class, with another message."""
        error = _rebuild(type(self), self.args, {**self.__dict__, "parameters": dict(self.parameters)})
        error.message = _cleaned(message)
        error.args = (_text(self.condition, error.message, self.hint),)
        return error

    def to_json(self) -> str:
        """Return the error as text for another process: its class, and the attributes that JSON can carry.

        The class is one of this module: another process may not have its subclasses. Long texts are cut.
        """
        kept = {name: value for name, value in self.__dict__.items() if type(value) in (str, int, bool)}
        kept = {name: value[:_MAX_TEXT] if type(value) is str else value for name, value in kept.items()}
        parameters = {name: value[:_MAX_PARAMETER] for name, value in [*self.parameters.items()][:MAX_LISTED]}
        kind = next(each.__name__ for each in type(self).__mro__ if each.__module__ == __name__)
        return json.dumps({"kind": kind, "attributes": {**kept, "parameters": parameters}}, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> ConnectorError | None:
        """Return the error of `to_json`; None if the text is not one."""
        try:
            parsed = json.loads(text)
            kind, attributes = globals()[parsed["kind"]], parsed["attributes"]
            if not issubclass(kind, ConnectorError) or type(attributes["retriable"]) is not bool:
                return None
            text = _text(attributes["condition"], attributes["message"], attributes["hint"])
            return _rebuild(kind, (text,), {**attributes, "parameters": dict(attributes["parameters"])})
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    @staticmethod
    def in_text(text: str) -> ConnectorError | None:
        """Return the last error of this package that a traceback ends with; None if there is none.

        Whether it was retriable, and its parameters, are not in a text.
        """
        found = _IN_TRACEBACK.findall(_SEE_ENTRY.sub("", text))
        if not found:
            return None
        name, condition, rest = found[-1]
        message, _, hint = rest.partition(" Hint: ")
        content = {"condition": condition, "message": message, "hint": hint, "retriable": False, "parameters": {}}
        return ConnectorError.from_json(json.dumps({"kind": name, "attributes": content}))

    def change_hint(self, hint: str) -> None:
        """Replace the hint in place, for a layer that has a better one."""
        self.hint = _cleaned(hint)
        self.args = (_text(self.condition, self.message, self.hint),)

    def __str__(self) -> str:
        text = str(self.args[0])
        try:
            is_known = self.condition in _entries()
        except OSError:
            # The error may be that no more files can be opened.
            return text
        return f"{text} See {entry_address('errors', self.condition)}" if is_known else text

    def __reduce__(self) -> tuple[Any, ...]:
        # The finished text is pickled, not the constructor's arguments: subclasses may build it differently.
        return (_rebuild, (type(self), self.args, self.__dict__))


def _cleaned(text: str) -> str:
    """Return a text of several lines that is printable; of the errors in it, none has an address."""
    return printable(_SEE_ENTRY.sub("", text), _LINES)


def _text(condition: str, message: str, hint: str) -> str:
    return f"[{condition}] {message} Hint: {hint}" if hint else f"[{condition}] {message}"


def _rebuild(cls: type[ConnectorError], args: tuple[Any, ...], state: dict[str, Any]) -> ConnectorError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error


class OptionError(ConnectorError, ValueError):
    """Options are missing, unknown, malformed or in conflict; the text lists all of them.

    Attributes:
        problems: if there are several, each problem as its sentence and its hint.
    """

    problems: tuple[tuple[str, str], ...] = ()

    def __init__(self, message: str, *, problems: Sequence[tuple[str, str]] = (), **details: Any) -> None:
        """Keep the single problems as well."""
        super().__init__(message, **details)
        self.problems = tuple(problems)


class SchemaError(ConnectorError, TypeError):
    """The columns of a DataFrame or of a user-given schema do not fit."""


class CheckpointError(ConnectorError, ValueError):
    """A source offset is unreadable, or newer than this version, or belongs to another subscription."""


class BrokerError(ConnectorError):
    """A broker returned an error code; the text has its number and its Kafka name.

    Attributes:
        code: the number on the wire; unknown numbers are kept.
    """

    def __init__(self, message: str, *, code: int, condition: str, **details: Any) -> None:
        """Keep the broker's code as well."""
        super().__init__(message, condition=condition, **details)
        self.code = code


class AccessError(BrokerError):
    """Authentication or authorization was refused.

    Attributes:
        rights: the missing rights, all on one resource; empty if none is known.
        grant: the sentence of the hint with the command that grants them.
    """

    rights: tuple[object, ...] = ()
    grant: str = ""


class TransportError(ConnectorError):
    """A broker could not be reached, or the connection to it was lost."""


class DeadlineError(ConnectorError, TimeoutError):
    """A step did not finish within its time; the text names the step, the budget and the last cause."""


class DataLossError(ConnectorError):
    """Records of a planned range are gone; sub-conditions mirror Spark's `KAFKA_DATA_LOSS` list."""


class PlanningError(ConnectorError):
    """A batch cannot be planned: its range contradicts the start of the run, or the current partitions."""


class ProtocolError(ConnectorError):
    """Bytes or a response that the Kafka protocol does not allow."""


class CorruptRecordsError(ProtocolError):
    """Record-batch bytes fail their checksum or are malformed; no record of the batch was emitted.

    Attributes:
        whole_bytes: the size of the whole record batches before the damaged one; None if it is not known.
    """

    whole_bytes: int | None = None

    def __init__(self, message: str, *, whole_bytes: int | None = None, **details: Any) -> None:
        """Keep the position of the damaged batch as well."""
        super().__init__(message, **details)
        self.whole_bytes = whole_bytes


class RecordError(ConnectorError):
    """One record cannot be represented or sent; the text names it."""


class DeliveryError(ConnectorError):
    """Records could not be delivered; the text names the delivered, undelivered and doubtful records."""


class RegistryError(ConnectorError):
    """A schema registry did not respond, refused the login, or sent an unusable response; no record is at fault."""


class MissingDependencyError(ConnectorError, ImportError):
    """An optional library is missing; the text names the extra to install."""


class SetupError(ConnectorError):
    """The machine lacks a requirement (Java, a writable cache); the text names what to install."""


def described(value: object) -> str:
    """Return the type of an object with its article, for errors: "a list", "an int"."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


class ContractError(ConnectorError, TypeError):
    """A source or a sink violates the contract of `pyspark_kafka.connector`."""

    @staticmethod
    def violated(owner: object, method: str, expected: str, *, hint: str = "") -> ContractError:
        """Build the error of one method: `Class.method() expected`.

        Args:
            owner: the object, or its class.
            method: the method that was called.
            expected: the rule of the contract and the finding, as the end of a sentence.
            hint: a remedy; the page with the contract, if it is empty.
        """
        name = (owner if isinstance(owner, type) else type(owner)).__qualname__
        return ContractError(
            f"{name}.{method}() {expected}",
            condition="CONTRACT_VIOLATED",
            hint=hint
            or f"Compare it with {DOCUMENTATION}custom-sources/ or {DOCUMENTATION}custom-sinks/ and correct it.",
            parameters={"class": name, "method": method},
        )


class CallError(ConnectorError):
    """A method of a source or a sink raised another error; the text names both, and the error is the cause."""

    @staticmethod
    def raised(owner: object, method: str, error: Exception, outcome: str) -> CallError:
        """Build the error of one call: `Class.method() raised ValueError: its text`.

        Args:
            owner: the object whose method was called.
            method: the method.
            error: the error that it raised.
            outcome: the fate of the data, as a sentence.
        """
        name = type(owner).__qualname__
        return CallError(
            f"{name}.{method}() raised {type(error).__name__}: {error}. {outcome}{_place(error)}",
            condition="CONNECTOR_CALL_FAILED",
            hint="Correct this line, or a function that it calls.",
            parameters={"class": name, "method": method},
        )


def _place(error: Exception) -> str:
    """Return the line that raised, as a sentence: PySpark shows no traceback of the cause of an error."""
    frames = extract_tb(error.__traceback__)
    return f" It was raised in {frames[-1].filename}, line {frames[-1].lineno}." if frames else ""


class CapabilityError(ConnectorError, NotImplementedError):
    """A table lacks a capability that a query needs."""

    @staticmethod
    def missing_method(owner: object, method: str, capability: str) -> CapabilityError:
        """Build the error of a method that a capability of the table requires and the object lacks."""
        name = type(owner).__qualname__
        return CapabilityError(
            f"{name} has no method {method}(), which capability {capability} of its table asks for.",
            condition="CAPABILITY_NOT_IMPLEMENTED",
            hint=f"Implement {name}.{method}(), or leave {capability} out of capabilities().",
            parameters={"class": name, "method": method, "capability": capability},
        )


class RetryError(ConnectorError):
    """Attempts or time are used up; the text names every attempt, and the last failure is the cause."""


class PartitionError(ConnectorError):
    """The work of one partition failed; the text names it, and the failure is the cause."""


class CommitConflictError(ConnectorError):
    """A commit of an epoch differs from its earlier commit, or is out of order; nothing was committed."""


class StateError(ConnectorError):
    """Keyed state is damaged, missing or not usable; the call did not change it."""


class ContinuousQueryError(ConnectorError):
    """A run of a continuous query failed; uncommitted rows are read again."""
