"""Files that registries know."""

from __future__ import annotations

import pytest

from pyspark_kafka._typed.codecs.protobuf.known_files import _MODULES, is_known, known_files


@pytest.mark.parametrize("path", sorted(_MODULES))
def test_file_that_registries_know_is_found_with_its_imports_before_it(path: str) -> None:
    if path.startswith("confluent/"):
        pytest.importorskip("confluent_kafka.schema_registry")
    found = known_files([path])
    names = [each.name for each in found]
    assert path in names
    for number, each in enumerate(found):
        assert {*each.dependency} <= {*names[:number]}
    assert is_known(path)


def test_files_that_are_given_or_that_nobody_knows_are_left_out() -> None:
    assert known_files(["google/type/money.proto", "shop/order.proto"], ["google/type/money.proto"]) == []
    names = [each.name for each in known_files(["google/type/datetime.proto"], ["google/protobuf/duration.proto"])]
    assert names == ["google/type/datetime.proto"]
    assert not is_known("shop/order.proto")
