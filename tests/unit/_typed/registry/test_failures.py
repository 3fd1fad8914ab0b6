"""The texts of a registry's errors."""

from __future__ import annotations

from pyspark_kafka._typed.registry.failures import shortened, unreachable


def test_sentence_of_a_library_is_part_of_the_error() -> None:
    said = shortened("Server disconnected\n  without sending a response.")
    error = unreachable("schema 7", "http://registry", f"RemoteProtocolError: {said}")
    assert "without sending a response. No record is at fault" in str(error)


def test_long_text_is_cut() -> None:
    assert shortened("a." * 200) == "a." * 150 + "…"
