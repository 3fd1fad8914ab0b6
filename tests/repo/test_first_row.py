"""tools/first_row.py: what it takes from a page, what it runs, and when it fails."""

from __future__ import annotations

import venv
from pathlib import Path

import pytest

import first_row
from pyspark_kafka.version import REPOSITORY, install_command

PAGE = """
```sh
{install}
```

```python
print("one")
```

Now:

```python
print("two")
```

```text
two
```

```python
print("three")
```
"""


def run(
    place: Path, monkeypatch: pytest.MonkeyPatch, printed: str, *, wheel: Path | None = None
) -> tuple[str, dict[str, str]]:
    """Run the tool on a page without its shell, and return the script and the variables that this would have had."""
    given: list[dict[str, str]] = []

    def call(_: list[str], folder: Path, environment: dict[str, str]) -> str:
        given.append(environment)
        for name in ("installed", "shown"):
            (folder / name).touch()
        return printed

    monkeypatch.setattr(first_row, "call", call)
    monkeypatch.setattr(venv, "create", lambda *_, **__: None)
    (place / "page.md").write_text(PAGE.format(install=install_command("json")))
    first_row.show_first_row(place / "page.md", place, wheel=wheel)
    return (place / "first.sh").read_text(), given[0]


def test_first_lines_of_a_page_end_with_its_first_table(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(PAGE.format(install="make"))
    assert first_row.first_lines(tmp_path / "page.md") == ("make\n", 'print("one")\nprint("two")\n', "two\n")


def test_first_lines_are_those_of_the_first_tab(tmp_path: Path) -> None:
    tabs = "".join(f"/// tab | {each}\n\n```python\n{each}()\n```\n\n///\n" for each in ("one", "two", "three"))
    (tmp_path / "page.md").write_text(f"{tabs}\n```python\nlast()\n```\n\n{tabs}\n```text\n1\n```\n")
    assert first_row.first_lines(tmp_path / "page.md").program == "one()\nlast()\none()\n"


def test_page_without_a_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("```sh\nmake\n```\n")
    with pytest.raises(SystemExit, match="has no table"):
        first_row.first_lines(tmp_path / "page.md")


@pytest.mark.parametrize("page", first_row.PAGES, ids=lambda page: page.stem)
def test_page_has_first_lines(page: Path) -> None:
    lines = first_row.first_lines(page)
    assert "pip install" in lines.install
    assert ".show()" in lines.program
    assert lines.table.startswith("+---")


def test_printed_lines_are_run_with_the_checkout_in_place_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, environment = run(tmp_path, monkeypatch, "two\n")
    assert script.startswith(f"{install_command('json')}\n")
    assert "PIP_CONSTRAINT" not in environment
    assert environment["GIT_CONFIG_VALUE_0"] == REPOSITORY
    assert environment["GIT_CONFIG_KEY_0"] == f"url.{first_row.ROOT.as_uri()}.insteadOf"


def test_wheel_takes_the_place_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, environment = run(tmp_path, monkeypatch, "two\n", wheel=tmp_path / "a.whl")
    assert script.startswith('pip install "pyspark-kafka[json]"\n')
    constraint = Path(environment["PIP_CONSTRAINT"]).read_text()
    assert constraint == f"pyspark-kafka @ {(tmp_path / 'a.whl').as_uri()}\n"


def test_other_table_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match=r"page\.md: the first lines printed another table"):
        run(tmp_path, monkeypatch, "one\n")
