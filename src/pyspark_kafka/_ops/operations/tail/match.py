"""The filter of shown records: by text, by key, by header. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._ops.operations.tail.shown import json_text


@dataclass(frozen=True, slots=True)
class RecordMatch:
    """The conditions of a shown record; it must meet all. Texts are compared as UTF-8, case-sensitive.

    Typed keys and values are compared by their JSON, a text key also by its text.

    Attributes:
        text: a part of the key or of the value; empty: any.
        key: the whole key; None: any.
        headers: names and values of headers that the record has.
    """

    text: str = ""
    key: str | None = None
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def takes_all(self) -> bool:
        """Whether every record is shown."""
        return not self.text and self.key is None and not self.headers

    def rows(self, batch: pa.RecordBatch, corrupt: str | None = None) -> np.ndarray[Any, Any] | None:
        """Return a batch's shown rows, in ascending order; None: all.

        Args:
            batch: with the columns `key`, `value` and `headers`.
            corrupt: the corrupt column, whose bytes are compared; None: without such a column.
        """
        if self.takes_all:
            return None
        kept = np.ones(batch.num_rows, bool)
        if self.key is not None:
            key = self.key
            kept &= _where(batch, "key", corrupt, key.encode(), _equals, lambda text: text in (key, _quoted(key)))
        if self.text:
            text, data = self.text, self.text.encode()
            found = _where(batch, "key", corrupt, data, _contains, lambda shown: text in shown)
            kept &= found | _where(batch, "value", corrupt, data, _contains, lambda shown: text in shown)
        if self.headers and kept.any():
            wanted = [(name, value.encode()) for name, value in self.headers]
            headers = batch.column("headers")
            for row in np.flatnonzero(kept):
                has = {(each["key"], each["value"]) for each in headers[int(row)].as_py() or ()}
                kept[row] = all(pair in has for pair in wanted)
        return np.flatnonzero(kept)


def _where(
    batch: pa.RecordBatch,
    side: str,
    corrupt: str | None,
    data: bytes,
    of_bytes: Callable[[Any, bytes], Any],
    of_text: Callable[[str], bool],
) -> np.ndarray[Any, Any]:
    column = batch.column(side)
    if pa.types.is_binary(column.type) or pa.types.is_string(column.type):
        found = _as_numpy(of_bytes(column.cast(pa.binary()), data))
    else:
        found = np.array([each.is_valid and of_text(json_text(each)) for each in column], bool)
    if corrupt is not None and batch.column(corrupt).null_count < batch.num_rows:
        raw = batch.column(corrupt).field("rawKey" if side == "key" else "rawValue")
        found |= _as_numpy(of_bytes(raw, data)) & _as_numpy(batch.column(corrupt).is_valid())
    return found


def _equals(column: Any, data: bytes) -> Any:
    return pc.equal(column, pa.scalar(data, pa.binary()))


def _contains(column: Any, data: bytes) -> Any:
    return pc.match_substring(column, data)


def _as_numpy(column: Any) -> np.ndarray[Any, Any]:
    return np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False), bool)


def _quoted(key: str) -> str:
    return json_text(pa.scalar(key))
