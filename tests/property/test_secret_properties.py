"""No sequence of operations on a secret, or on options that hold one, shows its value."""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
import pickle
import pprint
import traceback
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._client.options import OPTIONS, Secret, parse_batch_read_options, parse_write_options
from pyspark_kafka.errors import OptionError

# Found in nothing else, and changed by no quoting.
PLANTED = "Pl4ntedS3cret"
SECRETS = sorted(option.name for option in OPTIONS if option.secret)
OTHERS = sorted(option.name for option in OPTIONS if not option.secret)
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def formatted(secret: Any) -> str:
    return logging.Formatter().format(logging.LogRecord("x", 30, "f", 1, "%s %r", (secret, secret), None))


# Each turns a thing that holds a secret into another one, or into text.
OPERATIONS: list[Callable[[Any], Any]] = [
    repr,
    str,
    ascii,
    lambda held: f"{held:>20} {held} {held!r:>60} {held!s:^5}",
    lambda held: "%s %r" % (held, held),  # noqa: UP031
    formatted,
    copy.copy,
    copy.deepcopy,
    lambda held: [held],
    lambda held: {"value": held},
    lambda held: (held, held),
    lambda held: json.dumps(held, default=str),
    lambda held: json.dumps(held, default=lambda other: getattr(other, "__dict__", repr(other))),
    pprint.pformat,
    lambda held: pickle.loads(pickle.dumps(held)),  # noqa: S301 - our own bytes
    dataclasses.asdict,
    vars,
    lambda held: held + "x",
    "".join,
    lambda held: held.encode(),
    bytes,
    lambda held: held < PLANTED,
    lambda held: held == PLANTED,
    lambda held: PLANTED in held,
    lambda held: sorted([held, "x"]),
    list,
    int,
    float,
    lambda held: setattr(held, "_text", "x"),
    lambda held: held.__getstate__(),
    lambda held: held.__dict__,
    ValueError,
    hash,
    dir,
]


def shown(held: Any) -> str:
    """Return what is seen of a value: its text, and that of an exception's traceback."""
    if isinstance(held, BaseException):
        return "".join(traceback.format_exception(held)) + repr(held) + repr(vars(held)) + repr(held.args)
    return repr(held) + str(held)


@given(st.lists(st.sampled_from(OPERATIONS), max_size=6), st.sampled_from(["secret", "read", "write"]))
def test_no_sequence_of_operations_shows_a_secret(operations: list[Callable[[Any], Any]], kind: str) -> None:
    raw = {
        "kafka.bootstrap.servers": "b:9092",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-256",
        "kafka.sasl.jaas.config": f'{SCRAM} username="ann" password="{PLANTED}";',
    }
    held: Any
    if kind == "secret":
        held = Secret(PLANTED)
    elif kind == "read":
        held = parse_batch_read_options({**raw, "subscribe": "t"})
    else:
        held = parse_write_options(raw, streaming=False)
    for operation in operations:
        try:
            held = operation(held)
        except Exception as error:  # noqa: BLE001 - what is raised is looked at like any other result
            held = error
        assert PLANTED not in shown(held)


FORMS = ["{}", "env:{} x", "call:{}", "x {} '", '{SCRAM} p="{}']


@given(
    st.dictionaries(st.sampled_from(SECRETS), st.sampled_from(FORMS)),
    st.dictionaries(st.sampled_from(OTHERS), st.sampled_from(["", "x", "-1", "SASL_SSL", "SSL", "PLAIN"]), max_size=3),
    st.booleans(),
)
def test_no_error_about_options_shows_a_secret(secrets: dict[str, str], others: dict[str, str], write: bool) -> None:
    planted = {name: text.replace("{SCRAM}", SCRAM).replace("{}", PLANTED) for name, text in secrets.items()}
    raw = {"kafka.bootstrap.servers": "b:9092", **others, **planted}
    found: object
    try:
        if write:
            found = parse_write_options(raw, streaming=True)
        else:
            found = parse_batch_read_options({"subscribe": "t", **raw})
    except OptionError as error:
        found = error
    assert PLANTED not in shown(found)
