"""What keeps credentials out of texts that others write: the words of servers."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.options import Secret

if TYPE_CHECKING:
    from pyspark_kafka.options import Login


def without_secrets(text: str | None, login: Login) -> str | None:
    """Return a server's text with stars where it repeats a secret of the login.

    A server that is hostile, or whose own check of passwords raises a careless error, would put it into our error.
    """
    if text and is_dataclass(login):
        for field in fields(login):
            value = getattr(login, field.name)
            if isinstance(value, Secret):
                text = value.hidden_in(text)
    return text
