"""Errors cross from Python workers to the JVM as text, and between processes as pickles: both must keep every fact."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import pkgutil
import zipfile
from pathlib import Path
from traceback import format_exception
from typing import Any, NoReturn

import pytest

from kit.texts import said
from pyspark_kafka import errors
from pyspark_kafka._ops.reference.conditions import Entry, read_entries
from pyspark_kafka.errors import (
    BrokerError,
    CallError,
    ConnectorError,
    DataLossError,
    DeadlineError,
    OptionError,
    TransportError,
    listed,
    printable,
)

ERROR_CLASSES = sorted(
    (cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, ConnectorError)),
    key=lambda cls: cls.__name__,
)
# What a class demands beside what all of them take.
REQUIRED: dict[type[ConnectorError], dict[str, Any]] = {
    cls: {"code": 29} for cls in ERROR_CLASSES if issubclass(cls, BrokerError)
}


def build(cls: type[ConnectorError]) -> ConnectorError:
    return cls(
        "orders-3 [120, 500) failed.",
        condition="SOME_CONDITION",
        hint="Do this.",
        retriable=True,
        parameters={"topic": "orders", "partition": 3},
        **REQUIRED.get(cls, {}),
    )


def test_the_tree_has_its_classes() -> None:
    assert {"OptionError", "CheckpointError", "DataLossError", "AccessError", "SetupError"} <= {
        cls.__name__ for cls in ERROR_CLASSES
    }


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_survives_pickling_with_its_class_text_and_facts(protocol: int) -> None:
    built = [build(cls) for cls in ERROR_CLASSES]
    pairs = [(error, pickle.loads(pickle.dumps(error, protocol))) for error in built]  # noqa: S301 - our own bytes
    assert [type(error) for error, back in pairs if type(back) is not type(error)] == []
    assert [type(error) for error, back in pairs if str(back) != str(error)] == []
    assert [type(error) for error, back in pairs if vars(back) != vars(error)] == []
    assert [type(back) for _, back in pairs if back.parameters != {"topic": "orders", "partition": "3"}] == []
    assert [type(back) for _, back in pairs if back.retriable is not True] == []


def test_an_error_survives_a_way_as_json_with_its_class_text_and_facts() -> None:
    built = [build(cls) for cls in ERROR_CLASSES]
    back = [ConnectorError.from_json(error.to_json()) for error in built]
    assert [type(error) for error in back] == ERROR_CLASSES
    assert [str(error) for error in back] == [str(error) for error in built]
    assert [vars(error) for error in back if error is not None] == [
        {name: value for name, value in vars(error).items() if name not in ("whole_bytes", "problems")}
        for error in built
    ]


def test_an_error_of_a_subclass_goes_as_its_class_of_this_module() -> None:
    class UsersError(DataLossError):
        """Another process does not have it."""

    back = ConnectorError.from_json(UsersError("gone", condition="GONE", hint="Look.").to_json())
    assert type(back) is DataLossError


def test_json_of_an_error_is_bounded() -> None:
    parameters = {f"n{number}": "x" * 100_000 for number in range(1000)}
    error = ConnectorError("x" * 1_000_000, condition="GONE", hint="y" * 1_000_000, parameters=parameters)
    assert len(error.to_json()) < 500_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        "null",
        '{"kind":"Exception","attributes":{}}',
        '{"kind":"json","attributes":{}}',
        '{"kind":"CheckpointError","attributes":{"retriable":1}}',
        '{"kind":"CheckpointError","attributes":{"retriable":true,"condition":"A","message":"m"}}',
        '{"kind":["CheckpointError"],"attributes":{}}',
    ],
)
def test_other_json_is_no_error_of_this_package(text: str) -> None:
    assert ConnectorError.from_json(text) is None


def test_the_last_error_is_found_in_a_traceback() -> None:
    first, last = build(DataLossError), build(TransportError)
    text = f"Traceback …\npyspark_kafka.errors.DataLossError: {first}\n\npyspark_kafka.errors.TransportError: {last}\n"
    found = ConnectorError.in_text(text)
    assert type(found) is TransportError
    assert (str(found), found.condition, found.hint) == (str(last), last.condition, last.hint)
    assert ConnectorError.in_text("ValueError: [NO_ERROR_OF_OURS] boom") is None


def test_an_error_survives_copying() -> None:
    assert [cls for cls in ERROR_CLASSES if str(copy.copy(build(cls))) != str(build(cls))] == []


def test_the_text_is_condition_message_hint() -> None:
    text = "[SOME_CONDITION] orders-3 [120, 500) failed. Hint: Do this."
    assert {cls.__name__: str(build(cls)) for cls in ERROR_CLASSES} == {cls.__name__: text for cls in ERROR_CLASSES}


def test_text_ends_with_the_message_if_there_is_no_hint() -> None:
    assert str(ConnectorError("It failed.", condition="C")) == "[C] It failed."
    assert ConnectorError("It failed.", condition="C").retriable is False


def test_errors_are_also_the_builtin_ones_that_callers_catch() -> None:
    assert issubclass(OptionError, ValueError)
    assert issubclass(DeadlineError, TimeoutError)


def test_a_broker_error_keeps_a_code_that_no_table_knows() -> None:
    error = BrokerError("kafka-1:9092 answered 9999.", code=9999, condition="BROKER_ERROR")
    assert pickle.loads(pickle.dumps(error)).code == 9999  # noqa: S301 - our own bytes


def test_located_keeps_class_facts_and_hint_and_names_the_place() -> None:
    error = build(DataLossError)
    located = error.located("kafka-1:9092")
    assert type(located) is DataLossError
    assert str(located) == "[SOME_CONDITION] kafka-1:9092: orders-3 [120, 500) failed. Hint: Do this."
    assert located.parameters == error.parameters
    assert str(pickle.loads(pickle.dumps(located))) == str(located)  # noqa: S301 - our own bytes
    assert str(error) == "[SOME_CONDITION] orders-3 [120, 500) failed. Hint: Do this."


@pytest.mark.parametrize(
    ("count", "arguments", "ending"),
    [
        (20, {}, "18, 19"),
        (21, {}, "18, 19 and 1 more"),
        (23, {"noun": "partitions"}, "18, 19 and 3 more partitions"),
        (23, {"separator": "; ", "noun": "partitions"}, "18; 19; and 3 more partitions"),
    ],
)
def test_a_long_list_names_20_and_counts_the_others(count: int, arguments: dict[str, Any], ending: str) -> None:
    text = listed(range(count), **arguments)
    assert text.startswith("0" + arguments.get("separator", ", ") + "1")
    assert text.endswith(ending)


def test_a_list_is_described_thing_by_thing() -> None:
    assert listed([3, 1], lambda number: f"t-{number}") == "t-3, t-1"
    assert listed([]) == ""


def test_text_shows_control_characters_as_escapes_and_keeps_lines() -> None:
    error = TransportError(
        "a\x1b[31m\nb\t\u2028c", condition="X", hint="Do \x07.", parameters={"broker": "h\x00"}
    ).located("at \x9b")
    assert str(error) == "[X] at \\x9b: a\\x1b[31m\nb\t\\u2028c Hint: Do \\x07."
    assert error.parameters == {"broker": "h\\x00"}


@pytest.mark.parametrize("text", ["", "orders-3", "Größe 😀"])
def test_printable_text_stays_as_it_is(text: str) -> None:
    assert printable(text) is text


def test_value_of_a_parameter_ends_no_line_of_the_message() -> None:
    """Most are foreign: the address of a broker, the name of a topic."""
    host = "x\n26/11/29 09:00:00 ERROR forged"
    error = TransportError(
        f"Broker 1 at {host} cannot be reached.\nA second line of ours.", condition="C", parameters={"broker": host}
    )
    assert error.message == (
        "Broker 1 at x\\n26/11/29 09:00:00 ERROR forged cannot be reached.\nA second line of ours."
    )
    assert "A second line of ours." in str(error).splitlines()


@pytest.mark.parametrize("entry", read_entries(), ids=lambda entry: entry.condition)
def test_text_ends_with_the_address_of_its_entry_after_each_way_to_a_user(entry: Entry) -> None:
    error = ConnectorError("It failed.", condition=entry.condition, hint="Do this.")
    text = f"[{entry.condition}] It failed. Hint: Do this. See {entry.address}"
    assert str(error) == text
    assert str(ConnectorError("It failed.", condition=entry.condition)) == text.replace(" Hint: Do this.", "")
    # To the JVM and back, between processes, to another place of the code.
    traceback = "".join(format_exception(error))
    assert traceback.endswith(f"{text}\n")
    ways = [
        ConnectorError.in_text(traceback),
        ConnectorError.from_json(error.to_json()),
        pickle.loads(pickle.dumps(error)),  # noqa: S301 - our own bytes
        copy.copy(error),
    ]
    assert [str(each) for each in ways] == [text] * len(ways)
    assert str(error.located("here")) == text.replace("It failed.", "here: It failed.")
    error.change_hint("Do that.")
    assert str(error) == text.replace("Do this.", "Do that.")


def test_text_of_an_error_within_another_keeps_its_condition_without_its_address() -> None:
    inner = TransportError("gone.", condition="CONNECTION_FAILED", hint="Look.")
    outer = CallError.raised(object(), "read", inner, "Nothing was read.")
    assert said(outer) == (
        "[CONNECTOR_CALL_FAILED] object.read() raised TransportError: [CONNECTION_FAILED] gone. Hint: Look.. Nothing "
        "was read. Hint: Correct this line, or a function that it calls."
    )
    outer.change_hint(str(inner))
    assert said(outer).endswith(" Hint: [CONNECTION_FAILED] gone. Hint: Look.")
    assert said(inner.with_message(str(outer))).count("[CONNECTOR_CALL_FAILED]") == 1


def test_condition_without_an_entry_has_no_address() -> None:
    """One of a connector of one's own, or a code of a newer broker."""
    assert str(OptionError("Wrong.", condition="REST_OPTION")) == "[REST_OPTION] Wrong."


def test_text_has_no_address_if_the_table_cannot_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise OSError(24, "Too many open files")

    error = OptionError("Wrong.", condition="OPTION_INVALID")
    errors._entries.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(pkgutil, "get_data", refuse)
        assert str(error) == "[OPTION_INVALID] Wrong."
    assert said(error) == "[OPTION_INVALID] Wrong."


def test_text_of_a_package_in_an_archive_ends_with_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(errors.__file__)
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        archive.writestr("archived/__init__.py", "")
        for name in ("errors.py", "errors.md"):
            archive.write(source.with_name(name), f"archived/{name}")
    monkeypatch.syspath_prepend(tmp_path / "package.zip")
    archived = importlib.import_module("archived.errors")
    assert said(archived.OptionError("Wrong.", condition="OPTION_INVALID")) == "[OPTION_INVALID] Wrong."
