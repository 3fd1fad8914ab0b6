"""The versions that a broker and this client share."""

from __future__ import annotations

import pytest

from pyspark_kafka._client.client.wire.api_versions import ApiVersions
from pyspark_kafka._client.client.wire.messages import ApiVersionsRequest, FetchRequest, MetadataRequest
from pyspark_kafka.errors import ProtocolError

VERSIONS = ApiVersions({MetadataRequest.API_KEY: (0, 7), FetchRequest.API_KEY: (4, 99)})


@pytest.mark.parametrize(
    ("request_class", "max_version", "expected"),
    [
        (MetadataRequest, None, 7),
        (MetadataRequest, 5, 5),
        (MetadataRequest, 9, 7),
        (FetchRequest, None, FetchRequest.max_version),
        (FetchRequest, 12, 12),
    ],
)
def test_the_newest_shared_version_is_taken(request_class: object, max_version: int | None, expected: int) -> None:
    assert VERSIONS.newest(request_class, "b:9092", max_version=max_version) == expected


@pytest.mark.parametrize(("request_class", "max_version"), [(FetchRequest, 3), (ApiVersionsRequest, None)])
def test_no_shared_version_is_an_error_that_names_the_broker(request_class: object, max_version: int | None) -> None:
    with pytest.raises(ProtocolError, match=r"\[UNSUPPORTED_VERSION\] b:9092 and this client share no version of "):
        VERSIONS.newest(request_class, "b:9092", max_version=max_version)


def test_only_the_question_for_versions_can_be_sent_before_its_response() -> None:
    unasked = ApiVersions()
    assert unasked.shared(ApiVersionsRequest) == (0, ApiVersionsRequest.max_version)
    assert unasked.shared(MetadataRequest) is None
