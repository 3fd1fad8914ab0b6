"""The text of a schema of Avro: its JSON, with what Java's parser takes beside. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

# A string, in which a comment is none; or a comment. An open one ends with the text: no part is searched twice.
_COMMENT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)|/\*.*?(?:\*/|\Z)|//[^\n]*', re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][\w.$-]*")


def load_schema_text(text: str) -> Any:
    """Return the JSON of a schema, or the name of a type that is the whole text.

    Comments and a byte order mark are skipped.

    Raises:
        ValueError: it is neither; of a JSONDecodeError the text has no part of the schema.
        RecursionError: it nests too deeply.
    """
    text = text.removeprefix("\ufeff").strip()
    # `"long"` and `long` are both in use.
    if text[:1] not in ("{", "[", '"', "/"):
        if not _NAME.fullmatch(text):
            raise ValueError("it is neither JSON nor the name of a type")
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        bare = _COMMENT.sub(_blank, text)
        if bare == text:
            raise
    return json.loads(bare)


def _blank(found: re.Match[str]) -> str:
    """Return a string as it is, and a comment as blanks: what is behind it stays at its line and column."""
    return found[0] if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0])
