"""The connection of a command: an address, and a file of Java client properties for everything else.

Layer: cli.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark_kafka.errors import OptionError
from pyspark_kafka.options import EVERYWHERE, OPTIONS, parse_write_options

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark_kafka.options import ConnectionOptions

_SERVERS = "kafka.bootstrap.servers"
# An unknown property of security must be refused, not ignored: connections would be less safe than they look.
_SECURITY = ("ssl.", "sasl.", "security.")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# The name ends at the first =, : or blank that no backslash stands before.
_ENTRY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)


def resolve_connection(servers: str | None, file: Path | None) -> tuple[ConnectionOptions, tuple[str, ...]]:
    """Resolve how to connect, from an address and a file; the address takes precedence over that in the file.

    The file may be the one of Kafka's own tools: properties for reading and writing are ignored, as they have no
    meaning here. Names that no Kafka client has are refused.

    Returns:
        The options, and notes for the user.

    Raises:
        OptionError: with all problems at once; values of secrets are never repeated.
    """
    raw = {} if file is None else _read(file)
    if servers is not None:
        raw[_SERVERS] = servers
    if _SERVERS not in raw:
        raise OptionError(
            "No broker is named.",
            condition="OPTION_MISSING",
            hint="Pass --bootstrap-servers host:port, set PYSPARK_KAFKA_BOOTSTRAP_SERVERS, or put bootstrap.servers "
            "into the file of --config.",
        )
    resolved = parse_write_options(raw, streaming=False)
    return resolved.connection, resolved.notes


def parse_properties(text: str) -> dict[str, tuple[int, str]]:
    r"""Read Java's properties: the number of the line where each begins, and its value. The last of a name counts.

    Raises:
        ValueError: a malformed escape; the text is not repeated.

    Source: `java.util.Properties.load`.

    Example:
        >>> parse_properties("# login\nsasl.mechanism : PLAIN\n")
        {'sasl.mechanism': (2, 'PLAIN')}
    """
    found: dict[str, tuple[int, str]] = {}
    lines = re.split(r"\r\n|\r|\n", text)
    number = 0
    while number < len(lines):
        first, line = number + 1, lines[number].lstrip(" \t\f")
        number += 1
        if not line or line[0] in "#!":
            continue
        # An odd number of backslashes at the end: the next line, without its indentation, belongs to it.
        while _continues(line):
            line = line[:-1] + (lines[number].lstrip(" \t\f") if number < len(lines) else "")
            number += 1
        name, value = _ENTRY.findall(line)[0]
        found[_unescape(name, first)] = first, _unescape(value, first)
    return found


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str, line: int) -> str:
    def replace(escape: re.Match[str]) -> str:
        code = escape[1]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        if code == "u":
            raise ValueError(f"line {line} has an escape \\u without four hexadecimal digits")
        return _CONTROL.get(code, code)

    return _ESCAPE.sub(replace, text)


def _read(file: Path) -> dict[str, str]:
    try:
        # The encoding that Java's tools read these files in.
        properties = parse_properties(file.read_text(encoding="iso-8859-1"))
    except OSError as error:
        raise OptionError(
            f"The file of --config, {file}, cannot be read: {error.strerror}.",
            condition="CONFIG_UNREADABLE",
            hint="Pass the path of a client.properties file that you may read.",
            facts={"file": file},
        ) from error
    except ValueError as error:
        raise OptionError(
            f"The file of --config, {file}, is not a properties file: {error}.",
            condition="CONFIG_INVALID",
            hint="A backslash in a value is written twice; other characters as \\uXXXX.",
            facts={"file": file},
        ) from error
    raw: dict[str, str] = {}
    for name, (line, value) in properties.items():
        option = OPTIONS.get(f"kafka.{name}")
        if option is None and "." not in name:
            # Not repeated: a line that has lost its backslash may begin with a password.
            raise OptionError(
                f"Line {line} of the file of --config, {file}, does not begin with the name of a client property.",
                condition="CONFIG_INVALID",
                hint="A value continues in the next line only if its line ends with a backslash.",
                facts={"file": file, "line": line},
            )
        if option is None or option.scopes == EVERYWHERE or name.lower().startswith(_SECURITY):
            raw[f"kafka.{name}"] = value
    return raw
