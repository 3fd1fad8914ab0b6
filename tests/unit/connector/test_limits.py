"""Limits have Spark's factory names, and are values."""

from __future__ import annotations

import pickle

import pytest

from pyspark_kafka.connector import (
    CompositeReadLimit,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    ReadMinRows,
)


@pytest.mark.parametrize(
    ("made", "limit"),
    [
        (ReadLimit.allAvailable(), ReadAllAvailable()),
        (ReadLimit.maxRows(7), ReadMaxRows(7)),
        (ReadLimit.minRows(7, 500), ReadMinRows(7, 500)),
        (ReadLimit.minRows(7), ReadMinRows(7, None)),
        (ReadLimit.maxFiles(3), ReadMaxFiles(3)),
        (ReadLimit.maxBytes(1_000), ReadMaxBytes(1_000)),
        (
            ReadLimit.compositeLimit([ReadLimit.minRows(1, maxTriggerDelayMs=9), ReadLimit.maxRows(2)]),
            CompositeReadLimit((ReadMinRows(1, 9), ReadMaxRows(2))),
        ),
    ],
)
def test_factory_makes_the_limit_of_its_name(made: ReadLimit, limit: ReadLimit) -> None:
    assert type(made) is type(limit)
    assert made == limit
    assert hash(made) == hash(limit)
    assert pickle.loads(pickle.dumps(made)) == limit  # noqa: S301 - our own bytes
