"""A text that is never shown, or a reference to one that never travels."""

from __future__ import annotations

import hmac
import os
import re
from typing import Any, NoReturn

from pyspark_kafka._client.options.values.revealed import Revealed

_LITERAL = "literal"
# Kubernetes allows dots and hyphens in names of variables, too.
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_CALL = re.compile(r"(?!\d)\w+(?:\.(?!\d)\w+)*:(?!\d)\w+(?:\.(?!\d)\w+)*")
_REFERENCE = re.compile(r"(env|file|call|literal):(.*)", re.DOTALL)
_STARS = "***"
_SHORT = 3
# Of this process: what `fingerprint` returns says nothing elsewhere.
_FINGERPRINT_KEY = os.urandom(32)


class Secret:
    """A text that no repr, log line, error or serializer shows; or a reference, which is resolved by `reveal`.

    Not a `str`: formatting it by accident prints stars, or the reference; joining or serializing it fails. Immutable.
    Two are equal if they have the same text or the same reference: pools of connections are keyed by options, and what
    a reference leads to may change while connections are open. New connections use the new value.

    Runs on: driver and executor. Pickling keeps a text, which executors need, and of a reference only the reference.

    Example:
        >>> print(Secret("hunter2"), repr(Secret("hunter2")))
        *** Secret('***')
        >>> Secret.parse("env:KAFKA_PASSWORD")
        Secret('env:KAFKA_PASSWORD')
    """

    __slots__ = ("_kind", "_option", "_text")

    _kind: str
    _option: str
    _text: str

    def __init__(self, value: str, *, kind: str = _LITERAL, option: str = "") -> None:
        """Keep a text, as it is, out of sight. `parse` makes references."""
        if not isinstance(value, str):
            raise TypeError(f"a Secret is made of a str, not of {type(value).__name__}")
        for name, given in (("_kind", kind), ("_text", value), ("_option", option)):
            object.__setattr__(self, name, given)

    @classmethod
    def parse(cls, raw: str, option: str = "") -> Secret:
        """Read the value of an option: a reference if it has the form of one, else the text itself.

        | Form | The secret is |
        | --- | --- |
        | `env:NAME` | the environment variable, of the process that connects |
        | `file:PATH` | the text of the file, without line ends at its end |
        | `call:package.module:function` | what the function returns, called without arguments |
        | `literal:TEXT` | the text, which may itself begin like a reference |

        Args:
            raw: the value.
            option: the option that it is of, for errors.

        Raises:
            ValueError: it begins like a reference and is none; the sentence does not repeat the value.
        """
        match = _REFERENCE.fullmatch(raw)
        if match is None:
            return cls(raw, option=option)
        kind, text = match[1], match[2]
        wrong = ""
        if kind == "env" and _ENV.fullmatch(text) is None:
            wrong = "begins with 'env:' but no name of an environment variable follows, as in env:KAFKA_PASSWORD"
        elif kind == "call" and _CALL.fullmatch(text) is None:
            wrong = "begins with 'call:' but no function follows, as in call:package.module:function"
        elif kind == "file":
            # file:///run/secrets/kafka is the same path as a URL.
            text = text[2:] if text.startswith("///") else text
            if not text or text.startswith("//") or "\0" in text or "\n" in text:
                wrong = "begins with 'file:' but no path follows, as in file:/run/secrets/kafka"
        if wrong:
            raise ValueError(f"{wrong}; a secret that itself begins like that is written with 'literal:' before it")
        return cls(text, kind=kind, option=option)

    def for_option(self, option: str) -> Secret:
        """Return the same secret, an equal one, with the name of the option that it is of, for errors."""
        return Secret(self._text, kind=self._kind, option=option)

    @property
    def reference(self) -> str | None:
        """The reference, which is not secret: `env:NAME`; None for a text, which travels to executors."""
        return None if self._kind == _LITERAL else f"{self._kind}:{self._text}"

    def reveal(self) -> Revealed:
        """Return the value, to hand it to a security mechanism; what is referred to is read now, in this process.

        Blocks: a function for 30 seconds at most. Keep the value no longer than a connection needs it.

        Raises:
            OptionError: `SECRET_UNAVAILABLE`: there is nothing, or nothing usable, where the reference leads. The text
                names option, reference, and the place, and shows nothing of what was found.
            OptionError: `REFERENCE_NOT_ALLOWED`: the administrator of this process allows no such reference.
        """
        if self._kind == _LITERAL:
            return Revealed(self._text)
        from pyspark_kafka._client.options.values.secret_sources import read_secret  # noqa: PLC0415 - most queries have none

        return Revealed(read_secret(self._kind, self._text, self._option))

    def hidden_in(self, text: str) -> str:
        """Return a text with stars where it repeats the value, as it is or encoded; see `secret_echoes`.

        Stars alone if the value cannot be read any more.
        """
        try:
            value = self.reveal()
        except ValueError:
            return _STARS
        # Of a very short one the stars would reveal more than the text.
        if len(value) <= _SHORT:
            return text
        from pyspark_kafka._client.options.secret_echoes import without_echoes  # noqa: PLC0415 - for errors alone

        return without_echoes(text, value, _STARS)

    def fingerprint(self) -> bytes:
        """Return what changes with the value, for what is built from it and kept; it means nothing in other processes.

        Raises:
            OptionError: as `reveal`.
        """
        return hmac.digest(_FINGERPRINT_KEY, _encoded(self.reveal()), "sha256")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a Secret cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a Secret cannot be changed")

    def __repr__(self) -> str:
        return f"Secret({str(self)!r})"

    def __str__(self) -> str:
        return self.reference or _STARS

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return self._kind == other._kind and hmac.compare_digest(_encoded(self._text), _encoded(other._text))

    def __hash__(self) -> int:
        return hash((Secret, self._kind, self._text))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __getstate__(self) -> None:
        # Python's own returns the slots to any caller.
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unpickled, (self._kind, self._text, self._option))


def _unpickled(kind: str, text: str, option: str) -> Secret:
    return Secret(text, kind=kind, option=option)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
