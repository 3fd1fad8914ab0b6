from __future__ import annotations

import base64
import json
import re
from urllib.parse import quote, quote_plus

import pytest

from pyspark_kafka._client.options import Secret
from pyspark_kafka._client.options.secret_echoes import without_echoes

VALUE = 'Gr\u00fcn "&\\ 4lles+/=Pl4nted'
CORE = "Pl4nted"


def header(user: str, value: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{value}".encode()).decode()


@pytest.mark.parametrize(
    "echo",
    [
        VALUE,
        repr(VALUE),
        json.dumps(VALUE),
        repr(VALUE.encode()),
        quote(VALUE, safe=""),
        quote_plus(VALUE),
        re.sub("%..", lambda found: found[0].lower(), quote(VALUE, safe="")),
        VALUE.encode().hex(),
        *(base64.b64encode(b"\0" * shift + b"ann\0" + VALUE.encode()).decode() for shift in range(3)),
        *(base64.urlsafe_b64encode(b"\0" * shift + VALUE.encode() + b"end").decode() for shift in range(3)),
        *(header("ann" * times, VALUE) for times in (1, 2, 3, 4)),
        header("ann", quote_plus(VALUE)),
    ],
)
def test_echo_is_hidden_in_each_form(echo: str) -> None:
    hidden = Secret(VALUE).hidden_in(f"I got <{echo}>, and again {echo}!")
    assert hidden.count("***") >= 2
    assert hidden.startswith("I got <")
    assert hidden.endswith("!")
    for start in range(len(echo) - 8):
        assert echo[start : start + 9] not in hidden


def test_text_without_the_secret_stays_as_it_is() -> None:
    text = "invalid_client: the client ann is not known, see https://login.example/why?code=7"
    assert without_echoes(text, VALUE, "***") == text


def test_long_text_is_searched_in_one_go() -> None:
    piece = base64.b64encode(VALUE.encode()).decode()
    assert without_echoes("A" * 300_000 + piece + "A" * 300_000, VALUE, "***") == "***"
    assert len(without_echoes("A" * 600_000, VALUE, "***")) == 600_000
