"""Parsers of numbers, words, names and secrets.

The sentence of a `ValueError` says what the option must be and what it got.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping

from pyspark_kafka._client.options.values.secret import Secret

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
_DECIMAL = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,9})?")
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_HOST_PORT = re.compile(r"(?:\[(?P<v6>[0-9a-fA-F:.%a-z]+)\]|(?P<host>[^\s:@/\[\],]+)):(?P<port>[0-9]{1,5})")
_REGION = re.compile(r"[a-z]{2}(?:-[a-z0-9]+){2,4}")
_SHOWN = 200
# What may be repeated of a value that is not a word at all, or no number: a secret that was pasted into the wrong
# option is longer, or has digits and signs in it.
_SOURCE_NAME = re.compile(r"[a-zA-Z0-9_]{1,249}")
_PLAIN_WORD = re.compile(r".{0,3}|[A-Za-z_]{0,12}")
_PLAIN_NUMBER = re.compile(r".{0,3}|[0-9\s.,_+-]{0,25}[A-Za-z_ ]{0,12}")
_HOST_LIKE = re.compile(r"[A-Za-z0-9_.:/\[\]%-]{1,100}")
_MAX_PATH = 1024


def shown_word(raw: str, *known: str) -> str:
    """Quote a value that is none of the words of an option; if it may be a secret, return its length instead.

    Args:
        raw: the value.
        known: the words of the option: what is like one of them is a misspelled word.
    """
    text = raw.strip()
    like = len(text) <= 40 and difflib.get_close_matches(text.lower(), [each.lower() for each in known], 1, 0.6)
    return f"'{raw}'" if like or _PLAIN_WORD.fullmatch(text) else _hidden(raw)


def shown_number(raw: str) -> str:
    """Quote a value that is not a number; if it may be a secret, return its length instead."""
    return f"'{raw}'" if _PLAIN_NUMBER.fullmatch(raw) else _hidden(raw)


def shown_address(entry: str) -> str:
    """Quote a value that is not an address, or no URL; if it may be a secret, return its length instead."""
    if "@" in entry:
        # Users sometimes put credentials before it.
        return "an entry with '@' in it"
    # A single word may be a key; an address has a dot, a colon or a slash, but not two dots alone as a token has.
    is_address = _HOST_LIKE.fullmatch(entry) and re.search("[:/]|^[a-z0-9.-]+$", entry)
    return f"'{entry}'" if is_address or _PLAIN_WORD.fullmatch(entry) else _hidden(entry)


def _hidden(raw: str) -> str:
    return f"a text of {len(raw)} characters, which is not repeated, as it may be a secret"


def location(text_option: str = "") -> Callable[[str], str]:
    """Build the parser of the path of a file with certificates or keys, which never repeats what is not a path.

    Args:
        text_option: the option that takes the text of such a file; empty if there is none.
    """
    instead = f"; the text of a file belongs into '{text_option}'" if text_option else ""

    def parse(raw: str) -> str:
        path = text(raw)
        # Backslash and n stand for a line end in texts that went through JSON or a properties file.
        if "-----" in path or len(path) > _MAX_PATH or re.search(r"[\x00-\x1f]", path):
            raise ValueError(f"must be the path of a file; got {_hidden(raw)}{instead}")
        return path

    return parse


def shorten(text: str) -> str:
    """Quote a text for an error, cut if it is long."""
    return f"'{text}'" if len(text) <= _SHOWN else f"'{text[:_SHOWN]}…' ({len(text)} characters)"


def text(raw: str) -> str:
    """Accept any text that is not blank."""
    if not raw.strip():
        raise ValueError("must not be empty")
    return raw.strip()


def optional_text(raw: str) -> str | None:
    """Accept any text; None if it is blank."""
    return raw.strip() or None


def secret(raw: str) -> Secret:
    """Accept a secret as it is, including blanks, or a reference to one; see `Secret.parse`."""
    return Secret.parse(raw)


def boolean(raw: str) -> bool:
    """Read `true` or `false`, in any case."""
    try:
        return {"true": True, "false": False}[raw.strip().lower()]
    except KeyError:
        raise ValueError(f"must be true or false; got {shown_word(raw)}") from None


def whole_number(minimum: int, maximum: int, meaning: str = "") -> Callable[[str], int]:
    """Build the parser of whole numbers from `minimum` to `maximum`."""
    unit = f" of {meaning}" if meaning else ""
    expected = f"must be a whole number{unit} from {minimum} to {maximum}"

    def parse(raw: str) -> int:
        if _WHOLE_NUMBER.fullmatch(raw.strip()) is None or not minimum <= int(raw) <= maximum:
            raise ValueError(f"{expected}; got {shown_number(raw)}")
        return int(raw)

    return parse


def source_name(raw: str) -> str:
    """Accept the number of a source, or its name: ASCII letters, digits and underscores, as Spark's `name()`."""
    found = raw.strip()
    if _SOURCE_NAME.fullmatch(found) is None:
        raise ValueError(
            f"must be a number, or a name of ASCII letters, digits and underscores; got {shown_number(raw)}"
        )
    return str(int(found)) if found.isdigit() else found


def off_or_number(off: int, minimum: int, maximum: int, meaning: str) -> Callable[[str], int]:
    """Build the parser of whole numbers from `minimum` to `maximum`, or `off`, which is below them."""
    parse_number = whole_number(min(off, minimum), maximum, meaning)

    def parse(raw: str) -> int:
        number = parse_number(raw)
        if number != off and number < minimum:
            raise ValueError(f"must be {off}, or a whole number of {meaning} from {minimum} to {maximum}; got {number}")
        return number

    return parse


def decimal(minimum: float, maximum: float) -> Callable[[str], float]:
    """Build the parser of numbers from `minimum` to `maximum`, such as 0.8."""

    def parse(raw: str) -> float:
        if _DECIMAL.fullmatch(raw.strip()) is None or not minimum <= float(raw) <= maximum:
            raise ValueError(f"must be a number from {minimum:g} to {maximum:g}; got {shown_number(raw)}")
        return float(raw)

    return parse


def choice(allowed: Mapping[str, object], *, ignore_case: bool = True) -> Callable[[str], object]:
    """Build a parser for one of several words; the mapping has each word's value."""
    words = {(word.lower() if ignore_case else word): value for word, value in allowed.items()}

    def parse(raw: str) -> object:
        word = raw.strip().lower() if ignore_case else raw.strip()
        try:
            return words[word]
        except KeyError:
            raise ValueError(f"must be one of {', '.join(allowed)}; got {shown_word(raw, *allowed)}") from None

    return parse


def words(*allowed: str) -> Callable[[str], object]:
    """Build the parser of one of several words; the value is the word as spelled here."""
    return choice({word: word for word in allowed})


def bootstrap_servers(raw: str) -> tuple[tuple[str, int], ...]:
    """Read `host:port` pairs; IPv6 addresses are in brackets."""
    servers: list[tuple[str, int]] = []
    for entry in filter(None, (part.strip() for part in raw.split(","))):
        # Java accepts and drops a listener name before the address.
        match = _HOST_PORT.fullmatch(re.sub(r"^[A-Za-z_]+://", "", entry))
        if match is None or not 0 < int(match["port"]) <= 65535:
            raise ValueError(
                f"must be a list of host:port pairs, e.g. 'kafka-1:9092,[2001:db8::1]:9092', each with a port from 1 "
                f"to 65535; got {shown_address(entry)}"
            )
        server = (match["v6"] or match["host"], int(match["port"]))
        if server not in servers:
            servers.append(server)
    if not servers:
        raise ValueError("must name at least one broker as host:port, e.g. 'kafka-1:9092'; got an empty list")
    return tuple(servers)


def topic_name(raw: str) -> str:
    """Read one topic name, by Kafka's rules."""
    name = raw.strip()
    if _TOPIC_NAME.fullmatch(name) is None or name in (".", ".."):
        raise ValueError(
            f"must be a topic name (1 to 249 of the characters a-z, A-Z, 0-9, '.', '_', '-'); got {shorten(name)}"
        )
    return name


def topic_names(raw: str) -> tuple[str, ...]:
    """Read topic names separated by commas, sorted, without duplicates."""
    names = {topic_name(part) for part in raw.split(",") if part.strip()}
    if not names:
        raise ValueError(f"must name at least one topic; got {shorten(raw)}")
    return tuple(sorted(names))


def pattern(raw: str) -> str:
    """Read a regular expression over topic names."""
    expression = raw.strip()
    if not expression:
        raise ValueError("must be a regular expression over topic names; got an empty text")
    try:
        re.compile(expression)
    except re.error as error:
        raise ValueError(
            f"must be a regular expression over topic names; got {shorten(expression)}: {error}. It is read as a "
            "Python regular expression"
        ) from error
    return expression


def aws_region(raw: str) -> str:
    """Read the name of a region of AWS."""
    if _REGION.fullmatch(raw.strip()) is None:
        shown = shown_word(raw, "eu-central-1", "us-east-1", "ap-south-1")
        raise ValueError(f"must be a region of AWS, such as eu-central-1; got {shown}")
    return raw.strip()
