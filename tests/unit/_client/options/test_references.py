from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_kafka._client.options import Secret, check_reference
from pyspark_kafka.errors import OptionError

OPTION = "kafka.ssl.key.password"


def allow(monkeypatch: pytest.MonkeyPatch, entries: str) -> None:
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", entries)


def is_allowed(kind: str, text: str) -> bool:
    try:
        check_reference(kind, text, OPTION)
    except OptionError:
        return False
    return True


@pytest.mark.parametrize("kind", ["env", "file", "call", "identity"])
def test_everything_is_allowed_without_the_variable(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_KAFKA_REFERENCES", raising=False)
    assert is_allowed(kind, "/etc/anything")


@pytest.mark.parametrize("kind", ["env", "file", "call", "identity"])
@pytest.mark.parametrize("entries", ["", " , ", "env:B", "file:/other,call:b:*,identity:b"])
def test_nothing_else_than_the_entries_is_allowed(kind: str, entries: str, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, entries)
    assert not is_allowed(kind, "/etc/anything")


def test_variables_and_functions_are_allowed_by_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, "env:KAFKA_*, call:acme.vault:*,identity:aws")
    assert is_allowed("env", "KAFKA_PASSWORD")
    assert not is_allowed("env", "AWS_SECRET_ACCESS_KEY")
    assert not is_allowed("env", "kafka_password")
    assert is_allowed("call", "acme.vault:password")
    assert not is_allowed("call", "os:getcwd")
    assert not is_allowed("call", "acme.vault2:password")
    assert is_allowed("identity", "aws")
    assert not is_allowed("identity", "kerberos")
    assert not is_allowed("file", "KAFKA_PASSWORD")


def test_files_of_a_folder_are_allowed_and_none_that_dots_or_links_lead_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other = tmp_path / "kafka", tmp_path / "kafka2"
    for each in (folder / "..data", other):
        each.mkdir(parents=True)
        (each / "password").write_text("x")
    # As Kubernetes mounts secrets.
    (folder / "password").symlink_to("..data/password")
    (folder / "outside").symlink_to(other / "password")
    allow(monkeypatch, f"file:{folder}/")
    assert is_allowed("file", f"{folder}/password")
    assert is_allowed("file", f"{folder}/absent/file")
    assert not is_allowed("file", f"{folder}/outside")
    assert not is_allowed("file", f"{folder}/../kafka2/password")
    assert not is_allowed("file", f"{other}/password")
    assert not is_allowed("file", f"{folder}/pass\0word")
    monkeypatch.chdir(folder)
    assert is_allowed("file", "password")


def test_entry_without_a_slash_at_its_end_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, f"file:{tmp_path}/a")
    assert is_allowed("file", f"{tmp_path}/a")
    assert not is_allowed("file", f"{tmp_path}/ab")
    assert not is_allowed("file", f"{tmp_path}/a/b")


def test_root_allows_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, "file:/")
    assert is_allowed("file", "/etc/hosts")


@pytest.mark.parametrize("wrong", ["KAFKA_*", "envs:KAFKA_*", "file:run/secrets/", "env:", "*"])
def test_entry_that_is_none_allows_nothing_and_is_named(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, f"env:KAFKA_*,{wrong}")
    with pytest.raises(OptionError, match="nothing is allowed, because PYSPARK_KAFKA_") as caught:
        check_reference("env", "KAFKA_PASSWORD", OPTION)
    assert f"'{wrong}'" in caught.value.message


def test_error_names_option_and_reference_and_whom_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, "env:KAFKA_*")
    with pytest.raises(OptionError) as caught:
        check_reference("env", "HOME", OPTION)
    assert caught.value.message.startswith(f"Option '{OPTION}' asks for the reference 'env:HOME' ")
    assert caught.value.message.endswith(
        "its administrator does not allow this reference. Nothing was read, and no connection was made."
    )
    assert "PYSPARK_KAFKA_REFERENCES" in caught.value.hint
    assert "KAFKA_*" not in str(caught.value)
    assert caught.value.condition == "REFERENCE_NOT_ALLOWED"
    assert caught.value.parameters == {"option": OPTION, "reference": "env:HOME"}


@pytest.mark.parametrize("kind", ["env:KAFKA_X", "file:/run/x", "call:os:getcwd"])
def test_secret_is_not_read_if_its_reference_is_not_allowed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, "")
    with pytest.raises(OptionError) as caught:
        Secret.parse(kind, OPTION).reveal()
    assert caught.value.condition == "REFERENCE_NOT_ALLOWED"
    assert Secret("text").reveal() == "text"
