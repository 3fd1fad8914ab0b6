"""The options of a query as users have them: files, arguments, environment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark_kafka._ops.cli.common.connection_options import read_properties
from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_SERVERS = "kafka.bootstrap.servers"


def collect_options(
    config: Path | None, options_file: Path | None, given: Sequence[str], servers: str | None
) -> dict[str, Any]:
    """Return the options of all places; a later place takes precedence: file of properties, JSON, -o, address.

    Args:
        config: a file of Java client properties.
        options_file: a file with a JSON object: names and values as `.option()` takes them.
        given: texts of the form name=value.
        servers: host:port, several with commas between them.

    Raises:
        OptionError: a file cannot be read or has another form, or a text is not a name=value; values are not repeated.
    """
    raw: dict[str, Any] = {} if config is None else dict(read_properties(config))
    if options_file is not None:
        _put(raw, _read_json(options_file))
    for text in given:
        name, found, value = text.partition("=")
        if not found or not name.strip():
            # Not repeated: it may be a password whose name was forgotten.
            raise OptionError(
                "A text of -o has not the form name=value.",
                condition="ARGUMENT_INVALID",
                hint="Write -o name=value, such as -o kafka.security.protocol=SASL_SSL.",
            )
        _put(raw, {name.strip(): value})
    if servers is not None:
        _put(raw, {_SERVERS: servers})
    return raw


def _put(raw: dict[str, Any], more: dict[str, Any]) -> None:
    """Add options; one that is there in another case, or without the prefix, is replaced."""
    for name, value in more.items():
        key = _key(name)
        for known in [known for known in raw if _key(known) == key]:
            del raw[known]
        raw[name] = value


def _key(name: str) -> str:
    return name.strip().lower().removeprefix("kafka.")


def _read_json(file: Path) -> dict[str, Any]:
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(
            f"The file of --options, {file}, cannot be read: {error.strerror}.",
            condition="CONFIG_UNREADABLE",
            hint="Pass the path of a JSON file that you may read.",
            parameters={"file": file},
        ) from error
    except (ValueError, RecursionError) as error:
        place = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        # The cause is left out: its text repeats a part of the file.
        raise _not_options(file, f"it is not JSON{place}") from None
    if not isinstance(told, dict):
        raise _not_options(file, "it is not an object with the names of options")
    for name, value in told.items():
        if isinstance(value, (dict, list)) or value is None:
            raise _not_options(file, f"the value of '{name}' is not a text, a number or true or false")
    return told


def _not_options(file: Path, reason: str) -> OptionError:
    return OptionError(
        f"The file of --options, {file}, does not hold options: {reason}.",
        condition="CONFIG_INVALID",
        hint='Write the options as one JSON object: {"kafka.bootstrap.servers": "host:9092", "subscribe": "orders"}.',
        parameters={"file": file},
    )
