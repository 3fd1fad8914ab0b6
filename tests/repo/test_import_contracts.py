"""The import contracts of `.importlinter`: they hold, and those of layers name every module of their package."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).parents[2]
SOURCE = REPO / "src" / "pyspark_kafka"
CONFIG = configparser.ConfigParser()
CONFIG.read(REPO / ".importlinter")
LAYERS = [
    name.rpartition(":")[2]
    for name in CONFIG.sections()
    if name.startswith("importlinter:contract:") and CONFIG[name]["type"] == "layers"
]


def modules_of(package: str) -> set[str]:
    """Return the modules and packages that lie directly in a package."""
    folder = REPO / "src" / Path(*package.split("."))
    inner = {path.parent.name for path in folder.glob("*/__init__.py")}
    return inner | {path.stem for path in folder.glob("*.py") if path.stem != "__init__"}


def test_imports_follow_the_contracts() -> None:
    lint = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    done = subprocess.run([sys.executable, "-c", lint], cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_layers_name_every_module_of_their_package() -> None:
    assert LAYERS
    found = []
    for contract in LAYERS:
        named = re.findall(r"[\w.]+", CONFIG[f"importlinter:contract:{contract}"]["layers"])
        (package,) = {name.rpartition(".")[0] for name in named}
        found += [f"{contract}: {name}" for name in {name.rpartition(".")[2] for name in named} ^ modules_of(package)]
    assert not found, "\n".join(found)


def test_every_contract_has_a_name_that_is_not_taken() -> None:
    names = [CONFIG[section]["name"] for section in CONFIG.sections() if "name" in CONFIG[section]]
    assert len(names) == len(set(names)) == len(CONFIG.sections()) - 1


def test_no_folder_has_more_than_a_dozen_modules() -> None:
    folders = [path for path in (SOURCE, *SOURCE.rglob("*")) if path.is_dir() and path.name != "__pycache__"]
    modules = {folder: [path for path in folder.glob("*.py") if path.name != "__init__.py"] for folder in folders}
    assert {str(folder): len(found) for folder, found in modules.items() if len(found) > 12} == {}


def test_every_folder_says_its_invariant() -> None:
    folders = {path.parent for path in SOURCE.rglob("*.py")} - {SOURCE}
    texts = {folder: (folder / "__init__.py").read_text(encoding="utf-8") for folder in folders}
    assert [str(folder) for folder, text in texts.items() if "Invariant: " not in text] == []
