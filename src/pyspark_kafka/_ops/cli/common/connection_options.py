"""A file of Java client properties, as options of a query."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark_kafka._client.options import EVERYWHERE, OPTIONS
from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from pathlib import Path

# An unknown property of security must be refused, not ignored: connections would be less safe than they look.
_SECURITY = ("ssl.", "sasl.", "security.")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# The name ends at the first =, : or blank that no backslash stands before.
_ENTRY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)


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


def read_properties(file: Path) -> dict[str, str]:
    """Return the options in a file of Java client properties, with their prefix `kafka.`.

    Properties for reading and writing are left out; names that no Kafka client has are kept, to be refused.

    Raises:
        OptionError: the file cannot be read, or is not a properties file; its values are not repeated.
    """
    try:
        # The encoding that Java's tools read these files in.
        properties = parse_properties(file.read_text(encoding="iso-8859-1"))
    except OSError as error:
        raise OptionError(
            f"The file of --config, {file}, cannot be read: {error.strerror}.",
            condition="CONFIG_UNREADABLE",
            hint="Pass the path of a client.properties file that you may read.",
            parameters={"file": file},
        ) from error
    except ValueError as error:
        raise OptionError(
            f"The file of --config, {file}, is not a properties file: {error}.",
            condition="CONFIG_INVALID",
            hint="A backslash in a value is written twice; other characters as \\uXXXX.",
            parameters={"file": file},
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
                parameters={"file": file, "line": line},
            )
        if option is None or option.scopes == EVERYWHERE or name.lower().startswith(_SECURITY):
            raw[f"kafka.{name}"] = value
    return raw
