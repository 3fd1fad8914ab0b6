"""The release of a broker, by its versions of requests."""

from __future__ import annotations

import pytest

from pyspark_kafka.client.probes.release import guess_release


@pytest.mark.parametrize(
    ("offered", "release"),
    [
        ({1: (4, 17), 2: (1, 9), 0: (3, 11)}, "3.9"),
        ({1: (0, 11), 2: (0, 5), 0: (0, 8)}, "2.4"),
        ({35: (1, 5), 1: (4, 18)}, "4.3"),
        ({1: (0, 8)}, "older than 2.1"),
        ({}, "older than 2.1"),
    ],
)
def test_release_is_the_newest_whose_requests_are_offered(offered: dict[int, tuple[int, int]], release: str) -> None:
    assert guess_release(offered) == release
