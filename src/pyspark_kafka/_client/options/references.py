"""The files, variables, functions, identities and exporters that the options of a query may name in this process.

All of them, unless the administrator of the process says otherwise: by a variable of the environment, not by an option,
as whoever writes options is the one who is held. Whatever reads or calls what an option names calls `check_reference`
first.
"""

from __future__ import annotations

import os
import socket
import sys
from fnmatch import fnmatchcase

from pyspark_kafka.errors import OptionError

VARIABLE = "PYSPARK_KAFKA_REFERENCES"
# `identity`: a login that the process has without any option, at AWS or by a ticket of Kerberos.
# `exporter`: where the spans of the process go, which its own variables decide, and an option switches on.
_KINDS = ("env", "file", "call", "identity", "exporter")

_WORDS = {"file": "the file", "identity": "the identity that the process has", "exporter": "the exporter of spans"}


def check_reference(kind: str, text: str, option: str) -> None:
    """Refuse what an option names if this process does not allow it; nothing of it is read or imported before.

    Runs on: driver and executor, wherever what is named is used.

    Args:
        kind: env, file, call, identity or exporter.
        text: the name of a variable, the path of a file, an import path, `aws` or `kerberos`, the name of an exporter.
        option: that names it, for errors.

    Raises:
        OptionError: `REFERENCE_NOT_ALLOWED`: no entry of `PYSPARK_KAFKA_REFERENCES` is for it, or an entry is none.
    """
    allowed = os.environ.get(VARIABLE)
    if allowed is None:
        return
    entries = [entry.strip() for entry in allowed.split(",") if entry.strip()]
    wrong = next((entry for entry in entries if not _is_entry(entry)), None)
    if wrong is not None:
        reason = f"nothing is allowed, because {VARIABLE} has the entry '{wrong}', which is none"
        hint = (
            f"Have {VARIABLE} corrected: env:NAME, file:/path, file:/folder/, call:module:function, identity:aws, "
            "exporter:otlp."
        )
    elif any(_is_allowed(entry, kind, text) for entry in entries):
        return
    else:
        reason = "its administrator does not allow this reference"
        hint = f"Ask whoever runs this process which references its environment variable {VARIABLE} allows."
    what = _WORDS.get(kind, "the reference")
    named = text if kind in _WORDS else f"{kind}:{text}"
    raise OptionError(
        f"Option '{option}' asks for {what} '{named}' {place_of_process()}, and {reason}. Nothing was read, and no "
        "connection was made.",
        condition="REFERENCE_NOT_ALLOWED",
        hint=hint,
        parameters={"option": option, "reference": f"{kind}:{text}"},
    )


def place_of_process() -> str:
    """Return which kind of process this is, and on which machine: executors have other variables and files."""
    host = socket.gethostname()
    # Looked up, not imported: only _connector/spark/ imports PySpark.
    context = getattr(sys.modules.get("pyspark.taskcontext"), "TaskContext", None)
    if context is not None and context.get() is not None:
        return f"on an executor ({host})"
    return f"on the driver ({host})" if "pyspark" in sys.modules else f"in this process ({host})"


def _is_entry(entry: str) -> bool:
    kind, _, pattern = entry.partition(":")
    return kind in _KINDS and bool(pattern) and (kind != "file" or pattern.startswith("/"))


def _is_allowed(entry: str, kind: str, text: str) -> bool:
    of, _, pattern = entry.partition(":")
    if of != kind:
        return False
    if kind != "file":
        return fnmatchcase(text, pattern)
    try:
        # Neither dots nor links lead out of a folder.
        found, wanted = os.path.realpath(text), os.path.realpath(pattern)
    except (OSError, ValueError):
        return False
    if pattern.endswith("/"):
        return found.startswith(wanted if wanted.endswith("/") else f"{wanted}/")
    return found == wanted
