"""What references lead to is read when it is revealed, within bounds, and no error shows any of it."""

from __future__ import annotations

import importlib
import os
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.waiting import PATIENCE_S
from pyspark_kafka._client.options import Secret
from pyspark_kafka._client.options.values import secret_sources
from pyspark_kafka.errors import OptionError

PLANTED = "Pl4nted-S3cret"
OPTION = "kafka.ssl.key.password"


@pytest.fixture(autouse=True)
def nothing_called_before() -> Iterator[None]:
    secret_sources._called.clear()
    yield
    secret_sources._called.clear()


def all_that_shows(error: BaseException) -> str:
    """Return the texts of an error, of what it hangs on, and of the locals of the product's frames."""
    assert error.__cause__ is None
    assert error.__context__ is None
    shown = [*traceback.format_exception(error), repr(error), repr(vars(error))]
    trace = error.__traceback__
    while trace is not None:
        if "pyspark_kafka" in trace.tb_frame.f_code.co_filename:
            shown.append(repr(trace.tb_frame.f_locals))
        trace = trace.tb_next
    return "\n".join(shown)


def unavailable(raw: str) -> OptionError:
    with pytest.raises(OptionError) as caught:
        Secret.parse(raw, OPTION).reveal()
    assert caught.value.condition == "SECRET_UNAVAILABLE"
    assert PLANTED not in all_that_shows(caught.value)
    return caught.value


def test_variable_that_is_not_utf8_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "KAFKA_PASSWORD", f"{PLANTED}\udcdf")
    error = unavailable("env:KAFKA_PASSWORD")
    assert "'env:KAFKA_PASSWORD' of option 'kafka.ssl.key.password' is not available" in error.message
    assert "what is there is not text in UTF-8" in error.message


def test_text_of_a_function_that_is_not_utf8_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_sources, "_import_function", lambda _: lambda: f"{PLANTED}\ud800")
    assert "what is there is not text in UTF-8" in unavailable("call:vault:password").message


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of a user, in a package."""
    package = tmp_path / "planted_vault"
    package.mkdir()
    (package / "__init__.py").write_text("")
    text = f"""
        import threading
        answers = ["{PLANTED}"]
        released = threading.Event()
        def password(): return answers.pop(0)
        def raising(): raise ValueError("{PLANTED}")
        def exiting(): raise SystemExit("{PLANTED}")
        def binary(): return b"{PLANTED}"
        def empty(): return ""
        def hanging(): released.wait(60)
        class Kafka:
            password = staticmethod(lambda: "{PLANTED}")
        constant = "{PLANTED}"
    """
    (package / "kafka.py").write_text(textwrap.dedent(text))
    (package / "broken.py").write_text("import planted_elsewhere")
    # A function that is waited for no longer may import its module after its test has ended.
    _forget_module()
    monkeypatch.syspath_prepend(tmp_path)
    yield "planted_vault.kafka"
    _forget_module()


def _forget_module() -> None:
    for name in [name for name in sys.modules if name.startswith("planted_vault")]:
        del sys.modules[name]


def test_variable_is_read_when_it_is_revealed(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = Secret.parse("env:PLANTED_PASSWORD")
    for value in (PLANTED, "later"):
        monkeypatch.setenv("PLANTED_PASSWORD", value)
        assert secret.reveal() == value


def test_variable_that_is_missing_is_an_error_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLANTED_PASSWORD", raising=False)
    error = unavailable("env:PLANTED_PASSWORD")
    assert str(error).startswith(
        "[SECRET_UNAVAILABLE] The secret 'env:PLANTED_PASSWORD' of option 'kafka.ssl.key.password' is not available "
    )
    assert "the environment variable is not set. No connection was made." in str(error)
    assert error.parameters["option"] == OPTION
    assert error.hint == (
        "Set PLANTED_PASSWORD where the driver is started, and spark.executorEnv.PLANTED_PASSWORD for executors."
    )
    monkeypatch.setenv("PLANTED_PASSWORD", "")
    assert "the environment variable is empty" in str(unavailable("env:PLANTED_PASSWORD"))


def test_place_is_an_executor_where_a_task_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tasks:
        class TaskContext:
            @staticmethod
            def get() -> object:
                return object()

    monkeypatch.setitem(sys.modules, "pyspark.taskcontext", Tasks)
    error = unavailable("env:PLANTED_PASSWORD")
    assert "is not available on an executor (" in str(error)
    assert error.hint.startswith("Set spark.executorEnv.PLANTED_PASSWORD, or on Kubernetes ")


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", "\n\n"])
def test_file_is_read_each_time_without_line_ends_at_its_end(tmp_path: Path, ending: str) -> None:
    file = tmp_path / "password"
    secret = Secret.parse(f"file:{file}")
    for value in (PLANTED, " l\u00e4ter\nwith two lines "):
        file.write_bytes((value + ending).encode())
        assert secret.reveal() == value


def test_file_with_the_mark_of_its_encoding_is_read_without_it(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(PLANTED, encoding="utf-8-sig")
    assert Secret.parse(f"file:{tmp_path}/password").reveal() == PLANTED


def test_file_of_a_relative_path_is_looked_for_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"the file (as {tmp_path}/password) cannot be read: No such file" in str(unavailable("file:password"))
    (tmp_path / "password").write_text(PLANTED)
    assert Secret.parse("file:password").reveal() == PLANTED


def test_file_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    wrong: dict[str, tuple[bytes, str]] = {
        "large": (PLANTED.encode() * 80_000, "the file has more than 1048576 bytes"),
        "binary": (b"\xff" + PLANTED.encode(), "the file is not text in UTF-8"),
        "empty": (b"\n", "the file is empty"),
    }
    for name, (data, reason) in wrong.items():
        (tmp_path / name).write_bytes(data)
        assert reason in str(unavailable(f"file:{tmp_path}/{name}"))
    assert "is not a regular file" in str(unavailable(f"file:{tmp_path}"))


def test_file_that_is_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "it is not a regular file" in str(unavailable(f"file:{tmp_path}/pipe"))


def test_function_is_called_again_after_a_while(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = Secret.parse(f"call:{module}:password")
    assert secret.reveal() == secret.reveal() == PLANTED
    sys.modules[module].answers.append("later")
    assert secret.reveal() == PLANTED
    later = time.monotonic() + secret_sources.CALL_KEPT_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert secret.reveal() == "later"
    assert PLANTED not in repr(vars(secret_sources))


def test_function_that_fails_after_it_has_worked_shows_nothing(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Secret.parse(f"call:{module}:password").reveal() == PLANTED
    later = time.monotonic() + secret_sources.CALL_KEPT_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert "raised IndexError in " in str(unavailable(f"call:{module}:password"))


def test_function_may_be_an_attribute(module: str) -> None:
    assert Secret.parse(f"call:{module}:Kafka.password").reveal() == PLANTED


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("kafka:raising", "the function raised ValueError in "),
        ("kafka:exiting", "the function raised SystemExit in "),
        ("kafka:binary", "the function returned a bytes instead of a text"),
        ("kafka:empty", "the function returned an empty text instead of a text"),
        ("kafka:constant", "module 'planted_vault.kafka' has no function 'constant'"),
        ("kafka:absent.password", "module 'planted_vault.kafka' has no function 'absent.password'"),
        ("absent:password", "there is no module 'planted_vault.absent'"),
        ("broken:password", "there is no module 'planted_elsewhere'"),
    ],
)
def test_function_that_cannot_be_used_is_an_error(module: str, name: str, reason: str) -> None:
    assert module
    assert reason in str(unavailable(f"call:planted_vault.{name}"))


def test_function_that_never_returns_is_left_behind(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_sources, "CALL_SECONDS", 0.1)
    # Here, where it takes the time that it takes; the thread may not come to it within that of a call.
    released = importlib.import_module(module).released
    before = set(threading.enumerate())
    error = unavailable(f"call:{module}:hanging")
    assert "the function did not return within 0.1 s" in str(error)
    released.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE_S)


def test_each_error_names_option_and_reference(tmp_path: Path, module: str) -> None:
    references = ["env:PLANTED_ABSENT", f"file:{tmp_path}/absent", f"call:{module}:raising"]
    for reference in references:
        error: Any = unavailable(reference)
        assert error.parameters["reference"] == reference
        assert f"The secret '{reference}' of option '{OPTION}' " in error.message
