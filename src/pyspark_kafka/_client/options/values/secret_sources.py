"""The targets of references to secrets, read where a connection is opened: variables, files, functions.

Everything has a bound, in bytes or in seconds. No error shows anything of what was read, nor keeps an exception that
may: a function's own message is not repeated.
"""

from __future__ import annotations

import importlib
import os
import re
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from traceback import extract_tb

from pyspark_kafka._client.options.references import check_reference, place_of_process
from pyspark_kafka._client.options.values.revealed import Revealed
from pyspark_kafka.errors import OptionError, described

MAX_FILE_BYTES = 1 << 20
# A function may call a store of secrets over the network.
CALL_SECONDS = 30.0
# Connections to a cluster's brokers are opened together: they share one call. Short, so that a rotated secret is seen.
CALL_KEPT_SECONDS = 5.0

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

# When a value is forgotten, and the value.
_called: dict[str, tuple[float, Revealed]] = {}


class _UnavailableError(Exception):
    """The problem, as the end of a sentence about the reference, and its solution."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.reason, self.hint = reason, hint


def read_secret(kind: str, text: str, option: str) -> str:
    """Return what a reference leads to.

    Args:
        kind: env, file or call.
        text: what follows the kind.
        option: the option that has the reference, for errors.

    Raises:
        OptionError: `SECRET_UNAVAILABLE`, or `REFERENCE_NOT_ALLOWED`.
    """
    reference = f"{kind}:{text}"
    where = place_of_process()
    check_reference(kind, text, option)
    try:
        if kind == "env":
            value = _read_variable(text, where)
        elif kind == "file":
            value = _read_file(text)
        else:
            value = _call(text)
    except _UnavailableError as unavailable:
        reason, hint = unavailable.reason, unavailable.hint
    else:
        if _is_text(value):
            return value
        # The frames of the error keep their locals.
        del value
        reason, hint = "what is there is not text in UTF-8", "Write the secret in UTF-8."
    # Not within the handler: the error has no other one as its context.
    raise OptionError(
        f"The secret '{reference}'{f' of option {option!r}' if option else ''} is not available {where}: {reason}. "
        "No connection was made.",
        condition="SECRET_UNAVAILABLE",
        hint=hint,
        parameters={"option": option, "reference": reference, "where": where},
    )


def _read_variable(name: str, where: str) -> str:
    value = os.environ.get(name)
    if value:
        return value
    if "executor" in where:
        hint = f"Set spark.executorEnv.{name}, or on Kubernetes spark.kubernetes.executor.secretKeyRef.{name}."
    else:
        hint = f"Set {name} where the driver is started, and spark.executorEnv.{name} for executors."
    raise _UnavailableError("the environment variable is " + ("not set" if value is None else "empty"), hint)


def _read_file(path: str) -> str:
    """Return the text of a file. It is read each time, so that a replaced file is used by the next connection."""
    hint = (
        "Name a file that the driver and every executor can read, by its full path; mount it at the same place on all."
    )
    resolved = Path(path).absolute()
    named = "" if str(resolved) == path else f" (as {resolved})"
    reason = ""
    data = b""
    try:
        # Opening a pipe without a writer would wait for one.
        descriptor = os.open(resolved, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                with os.fdopen(descriptor, "rb", closefd=False) as file:
                    data = file.read(MAX_FILE_BYTES + 1)
            else:
                reason = "it is not a regular file"
        finally:
            os.close(descriptor)
    except OSError as error:
        reason = f"the file{named} cannot be read: {error.strerror or type(error).__name__}"
    size = len(data)
    value = _decoded(data)
    # The frames of the error keep their locals.
    del data
    if reason:
        raise _UnavailableError(reason, hint)
    if size > MAX_FILE_BYTES:
        raise _UnavailableError(f"the file has more than {MAX_FILE_BYTES} bytes", hint)
    if value is None:
        raise _UnavailableError("the file is not text in UTF-8", "Write the secret into the file as text.")
    if not value:
        raise _UnavailableError("the file is empty", "Write the secret into the file; replace it by renaming.")
    return value


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        # The exception has the bytes.
        return None


def _is_text(value: str) -> bool:
    """Return whether a text can be sent: bytes of a variable that are not UTF-8 are characters that no encoding has."""
    return value.isascii() or not _LONE_SURROGATE.search(value)


def _call(text: str) -> str:
    known = _called.get(text)
    if known is not None and time.monotonic() < known[0]:
        return known[1]
    found: list[object] = []
    failures: list[_UnavailableError] = []
    # A thread, left behind if the function never returns; nothing waits for it when the process ends.
    thread = threading.Thread(target=_call_into, args=(text, found, failures), daemon=True)
    thread.start()
    thread.join(CALL_SECONDS)
    if failures:
        raise failures[0]
    hint = "Let the function return the secret as a str, without asking a user or waiting for long."
    if not found:
        raise _UnavailableError(f"the function did not return within {CALL_SECONDS:g} s", hint)
    value = found.pop()
    if not isinstance(value, str) or not value:
        # Its type alone: a value of another type may hold the secret.
        kind = "an empty text" if isinstance(value, str) else described(value)
        del value
        raise _UnavailableError(f"the function returned {kind} instead of a text", hint)
    _called[text] = time.monotonic() + CALL_KEPT_SECONDS, Revealed(value)
    return value


def _call_into(text: str, found: list[object], failures: list[_UnavailableError]) -> None:
    try:
        found.append(_import_function(text)())
    except _UnavailableError as unavailable:
        failures.append(unavailable)
    except BaseException as error:  # noqa: BLE001 - whatever a user's function raises, and sys.exit() too
        # Not its message, which may show the secret, or how to get it.
        frames = extract_tb(error.__traceback__)
        place = f" in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
        failures.append(
            _UnavailableError(f"the function raised {type(error).__name__}{place}", "Correct the function.")
        )


def _import_function(text: str) -> Callable[[], object]:
    module, _, names = text.partition(":")
    hint = (
        f"Install the package of {module} on the driver and on every executor, or ship it with spark.submit.pyFiles; "
        "write call:package.module:function."
    )
    try:
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise _UnavailableError(f"there is no module {error.name!r}", hint) from None
    for name in names.split("."):
        found = getattr(found, name, None)
    if not callable(found):
        raise _UnavailableError(f"module {module!r} has no function {names!r}", hint)
    return found
