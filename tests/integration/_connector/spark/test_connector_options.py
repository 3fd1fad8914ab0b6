"""The options of Spark's own connector, as its jar has them: each has an answer here.

Needs the connector's jars, as `test_checkpoint_interop.py` does; `make test-interop JVM_JARS=folder` runs both.
"""

from __future__ import annotations

import os
import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyspark_kafka._client.options.catalogue import OPTIONS

_JARS_VARIABLE = "PYSPARK_KAFKA_JVM_JARS"
_PROVIDER = "org/apache/spark/sql/kafka010/KafkaSourceProvider$.class"
# What else the class has in words of that form: values, and parts of names.
_NO_OPTIONS = {"earliest", "executor", "false", "latest", "none", "source"}
# Sizes of the entries of a class's constants, by their tags; of a text it follows, and a long takes two places.
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
_TEXT, _STRING, _LONGS = 1, 8, (5, 6)

pytestmark = pytest.mark.skipif(
    not os.environ.get(_JARS_VARIABLE), reason=f"{_JARS_VARIABLE} names no folder with the JVM connector's jars"
)


def strings_of(data: bytes) -> Iterator[str]:
    """Yield the string literals of a Java class.

    Source: the Java Virtual Machine Specification, 4.4.
    """
    (count,) = struct.unpack_from(">H", data, 8)
    texts: dict[int, str] = {}
    literals: list[int] = []
    number, at = 1, 10
    while number < count:
        tag = data[at]
        if tag == _TEXT:
            (length,) = struct.unpack_from(">H", data, at + 1)
            texts[number] = data[at + 3 : at + 3 + length].decode(errors="replace")
            at += 3 + length
        else:
            if tag == _STRING:
                literals += struct.unpack_from(">H", data, at + 1)
            at += 1 + _SIZES[tag]
        number += 2 if tag in _LONGS else 1
    return (texts[each] for each in literals)


def test_each_option_of_sparks_connector_is_known() -> None:
    (jar,) = Path(os.environ[_JARS_VARIABLE]).glob("spark-sql-kafka-*.jar")
    found = strings_of(zipfile.ZipFile(jar).read(_PROVIDER))
    names = {text for text in found if re.fullmatch(r"[a-z]+(\.[a-z]+)*", text)} - _NO_OPTIONS
    assert {"subscribe", "startingoffsets", "fetchoffset.numretries"} <= names
    unknown = [name for name in sorted(names) if OPTIONS.get(name) is None and OPTIONS.get(f"kafka.{name}") is None]
    assert not unknown, "\n".join(unknown)
