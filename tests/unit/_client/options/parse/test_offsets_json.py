"""The JSON of startingOffsets, endingOffsets and assign."""

from __future__ import annotations

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import Earliest, Latest
from pyspark_kafka._client.options.parse.offsets_json import parse_assignment, parse_specific_offsets

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_option_offsets_have_numbers_sentinels_and_words_for_topics() -> None:
    parsed = parse_specific_offsets('{"a":{"0":23,"1":-1},"b":{"0":-2},"c":"Earliest","d":" LATEST "}')
    assert parsed.partitions == {A0: 23, A1: Latest(), B0: Earliest()}
    assert parsed.topics == {"c": Earliest(), "d": Latest()}


def test_first_end_of_a_query_is_an_option_without_the_starts_that_it_carries() -> None:
    assert parse_specific_offsets('{"a":{"00":2,"0":6,"01":0,"1":7},"b":{"0":1}}').partitions == {A0: 6, A1: 7, B0: 1}
    assert len(parse_specific_offsets('{"a":{"010":1,"10":2,"0":3}}').partitions) == 2
    with pytest.raises(ValueError, match="topic 'a' has '01' as a partition number"):
        parse_specific_offsets('{"a":{"01":0,"0":7}}')


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{}", "it names no partition"),
        ('{"a":{}}', "it names no partition"),
        ('"earliest"', "the outermost JSON value must be an object"),
        ('{"a":{"0":-3}}', "a-0 has '-3'; a partition takes"),
        (
            '{"a":{"0":"soon"}}',
            'a-0 has \'soon\'; a partition takes an offset from 0, "earliest" (-2) or "latest" (-1)',
        ),
        ('{"a":["0"]}', "topic 'a' must have an object"),
        ('{"a":"newest"}', "topic 'a' has 'newest'; a topic takes"),
        ('{"a":"earliest","a":{"0":1}}', "'a' has both a topic-level offset and offsets by partition"),
        ('{"a":{"0":1},"a":"earliest"}', "'a' has both a topic-level offset and offsets by partition"),
        ('{"a":"earliest","a":"latest"}', "'a' stands in it twice"),
        ('{"":"earliest"}', "'' is not a topic name"),
        ("earliest", "it is not JSON"),
    ],
)
def test_option_offsets_that_do_not_fit_are_refused_with_example_text_and_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r"expected e\.g\. ") as caught:
        parse_specific_offsets(text)
    assert f"got '{text}'" in str(caught.value)
    assert reason in str(caught.value)


def test_assignment_is_sorted() -> None:
    assert parse_assignment('{"b":[0],"a":[1,0]}') == (A0, A1, B0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a", "it is not JSON"),
        ("[]", "the outermost JSON value must be an object"),
        ("{}", "it names no partition"),
        ('{"a":[]}', "it names no partition"),
        ('{"a":0}', "topic 'a' must have a list"),
        ('{"a":["0"]}', "topic 'a' lists '0' as a partition"),
        ('{"a":[-1]}', "topic 'a' lists '-1' as a partition"),
        ('{"a":[true]}', "topic 'a' lists 'True' as a partition"),
        ('{"a":[2147483648]}', "topic 'a' lists '2147483648' as a partition"),
        ('{"a":[1,1]}', "a-1 is listed twice"),
    ],
)
def test_an_assignment_that_does_not_fit_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r"expected e\.g\. ") as caught:
        parse_assignment(text)
    assert reason in str(caught.value)


def test_a_partition_takes_the_words_as_well_as_sparks_numbers() -> None:
    words = parse_specific_offsets('{"a":{"0":"earliest","1":" Latest ","2":7}}')
    assert words == parse_specific_offsets('{"a":{"0":-2,"1":-1,"2":7}}')
