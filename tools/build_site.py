"""Build the site of the documentation into build/site/html, from docs/ and the pages of the root.

The pages are written for the repository. Here links to pages that the site has become links within it, links to other
files become links to the repository, and pages of the public names are made from their docstrings. The search has the
pages for users, and shows an entry first if its name was typed. `llms.txt` lists all pages. A link or an anchor that
leads nowhere fails the build. The settings are in zensical.toml.

usage: build_site.py [VERSION]     VERSION: its name among others, from which readers choose; see site_versions.py.
                                   Without it, the header has the version of the package.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path
from typing import Any

import tomli_w

import pyspark_kafka
from pyspark_kafka.testing.cache import cache_directory

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "zensical.toml"
ROOT_PAGES = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "DESIGN.md",
    "RELEASING.md",
    "SECURITY.md",
)
# The README is the page of the repository; index.md is that of the site. What is below the first steps is on both.
RENAMED = {"README.md": "first-steps.md"}
# The part of the navigation that the search leaves out: who changes the code has the repository.
NOT_SEARCHED = "Contribute"
MERMAID, MERMAID_SHA256 = "12.3.0", "be0684e8d20bfc874df12c0f04927a5c482f57f2200eec54cca52a4583fd4040"
# Public modules with names, and what they are for. The list of public modules: tests/repo/test_public_names.py.
MODULES = {
    "pyspark_kafka": "Programs",
    "pyspark_kafka.metrics": "Figures of queries",
    "pyspark_kafka.lineage": "Lineage of queries",
    "pyspark_kafka.continuous": "Continuous queries",
    "pyspark_kafka.connector": "Contracts of sources and sinks",
    "pyspark_kafka.connector.filters": "Filters of a read",
    "pyspark_kafka.toolkit": "Tools for sources and sinks",
    "pyspark_kafka.testing": "A Kafka for tests",
    "pyspark_kafka.testing.conformance": "Tests of a source or sink",
    "pyspark_kafka.formats": "Formats without Kafka",
    "pyspark_kafka.records": "Records without a broker",
    "pyspark_kafka.checkpoint": "Files of a checkpoint",
    "pyspark_kafka.delegation_tokens": "Delegation tokens",
    "pyspark_kafka.errors": "Errors",
}
# As in the list of the docstring, which begins with the most common; the others behind them.
_LISTED = re.findall(r"\w+", " ".join(re.findall(r"^- (`.*?`):", pyspark_kafka.__doc__ or "", re.MULTILINE)))
BY_USE = [*_LISTED, *(name for name in pyspark_kafka.__all__ if name not in [*_LISTED, "__version__"])]
# Which of its names a page shows, and in which order, where that is not those of `__all__` in the order of the source.
SHOWN = {
    "pyspark_kafka.errors": "{filters: ['Error$']}",
    "pyspark_kafka": f"{{group_by_category: false, members: [{', '.join(BY_USE)}]}}",
}
# Folders whose page the build writes, and what it lists.
FOLDERS = {"api": "Public modules", "internals": "Internals", "decisions": "Decisions"}
_LINK = re.compile(r"(?<!\!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_IMAGE = re.compile(r"!\[([^\[\]]*)\]\(([^()\s]+)\)")
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def main() -> None:
    """Fill the folder of pages, and build."""
    with CONFIG.open("rb") as file:
        project = tomllib.load(file)["project"]
    docs = ROOT / project["docs_dir"]
    shutil.rmtree(docs.parent, ignore_errors=True)
    docs.mkdir(parents=True)
    for version in sys.argv[1:]:
        project["site_url"] += f"{version}/"
        project["extra"]["version"] = {"provider": "mike", "default": "latest"}
    if not sys.argv[1:]:
        project["site_name"] += f" {pyspark_kafka.__version__}"
    pages = site_pages()
    for source, page in pages.items():
        target = docs / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(linked(source, (ROOT / source).read_text(), pages, project["extra"]["social"][0]["link"]))
    for image in (ROOT / "docs" / "images").iterdir():
        (docs / "images").mkdir(exist_ok=True)
        shutil.copy(image, docs / "images")
    for name in ("site.css", "site.js"):
        shutil.copy(ROOT / "tools" / name, docs)
    (docs / "mermaid.min.js").write_bytes(mermaid())
    write_api_pages(docs)
    write_folder_pages(docs)
    nav = with_folders(project["nav"], docs)
    missing = sorted({page.relative_to(docs).as_posix() for page in docs.rglob("*.md")} - set(pages_of(nav)))
    if missing:
        sys.exit(f"The navigation of zensical.toml lacks {', '.join(missing)}")
    build(project, nav)
    html = ROOT / project["site_dir"]
    arrange_search(html)
    (html / "llms.txt").write_text(llms_text(project, nav, docs))
    print(f"The site is in {html.relative_to(ROOT)}: {len(list(html.rglob('*.html')))} pages")


def site_pages() -> dict[str, str]:
    """Return the page of the site for each page of the repository, both as paths."""
    pages = {f"docs/{path.relative_to(ROOT / 'docs')}": str(path.relative_to(ROOT / "docs")) for path in docs_pages()}
    return pages | {name: name for name in ROOT_PAGES} | RENAMED


def docs_pages() -> list[Path]:
    """Return the pages below docs/."""
    return sorted((ROOT / "docs").rglob("*.md"))


def linked(source: str, text: str, pages: dict[str, str], repository: str) -> str:
    """Return a page with the links that it has on the site; code is left as it is."""
    here = posixpath.dirname(source)
    place = posixpath.dirname(pages[source])

    def link(match: re.Match[str]) -> str:
        label, target = match.groups()
        path, _, anchor = target.partition("#")
        if "://" in target or target.startswith(("#", "mailto:")):
            return match.group()
        resolved = posixpath.normpath(posixpath.join(here, path))
        if resolved not in pages:
            kind = "tree" if (ROOT / resolved).is_dir() else "blob"
            return f"[{label}]({repository}/{kind}/main/{resolved}{'#' + anchor if anchor else ''})"
        found = posixpath.relpath(pages[resolved], place or ".")
        if label.endswith(posixpath.basename(path)):
            label = title_of(ROOT / resolved)
        return f"[{label}]({found}{'#' + anchor if anchor else ''})"

    def image(match: re.Match[str]) -> str:
        resolved = posixpath.normpath(posixpath.join(here, match.group(2))).removeprefix("docs/")
        return f"![{match.group(1)}]({posixpath.relpath(resolved, place or '.')})"

    parts = _FENCED.split(text)
    return "".join(part if part.startswith("```") else _IMAGE.sub(image, _LINK.sub(link, part)) for part in parts)


def mermaid() -> bytes:
    """Return the script that draws diagrams; kept in the cache of the user."""
    kept = cache_directory() / f"mermaid-{MERMAID}.tgz"
    if not kept.is_file():
        with urllib.request.urlopen(
            f"https://registry.npmjs.org/mermaid/-/mermaid-{MERMAID}.tgz", timeout=60
        ) as answer:
            got = answer.read()
        if hashlib.sha256(got).hexdigest() != MERMAID_SHA256:
            sys.exit(f"mermaid {MERMAID} from the npm registry has another checksum than the pinned one")
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(got)
    with tarfile.open(kept) as archive:
        member = archive.extractfile("package/dist/mermaid.min.js")
        return b"" if member is None else member.read()


def write_api_pages(docs: Path) -> None:
    """Write a page for each public module; the docstrings are put in by mkdocstrings."""
    (docs / "api").mkdir()
    for module, subject in MODULES.items():
        shown = f"    options: {SHOWN[module]}\n" if module in SHOWN else ""
        (docs / "api" / f"{module}.md").write_text(f"# {subject}\n\n::: {module}\n{shown}")


def write_folder_pages(docs: Path) -> None:
    """Write the page of each folder that has none: a list of its pages."""
    for folder, title in FOLDERS.items():
        lines = [f"# {title}", ""]
        for name, path in pages_by_name(docs / folder).items():
            module = f"`{name}`: " if name in MODULES else ""
            lines.append(f"- {module}[{title_of(path)}]({path.name})")
        (docs / folder / "index.md").write_text("\n".join(lines) + "\n")


def pages_by_name(folder: Path) -> dict[str, Path]:
    """Return the pages of a folder by title, or by the name of the module that a page is about, in ascending order."""
    paths = [path for path in folder.glob("*.md") if path.name != "index.md"]
    names = {path.stem if path.stem in MODULES else title_of(path): path for path in paths}
    return {name: names[name] for name in sorted(names, key=str.lower)}


def with_folders(nav: list[Any], docs: Path) -> list[Any]:
    """Replace each folder of the navigation by its pages."""
    found: list[Any] = []
    for entry in nav:
        ((title, value),) = entry.items()
        if isinstance(value, list):
            found.append({title: with_folders(value, docs)})
        elif value.endswith("/"):
            listed = [{name: f"{value}{path.name}"} for name, path in pages_by_name(docs / value).items()]
            found.append({title: [{FOLDERS[value.strip("/")]: f"{value}index.md"}, *listed]})
        else:
            found.append(entry)
    return found


def title_of(page: Path) -> str:
    """Return the first heading of a page."""
    return page.read_text().partition("\n")[0].removeprefix("# ").replace("`", "")


def pages_of(nav: list[Any]) -> Iterator[str]:
    """Yield the pages of a navigation, in order."""
    for entry in nav:
        ((_, value),) = entry.items()
        if isinstance(value, list):
            yield from pages_of(value)
        else:
            yield value


def build(project: dict[str, Any], nav: list[Any]) -> None:
    """Run zensical with the navigation written out; every warning is an error."""
    config = ROOT / project["docs_dir"] / ".." / "zensical.toml"
    settings = {**project, "nav": nav, "docs_dir": "docs", "site_dir": "html"}
    handler = settings["plugins"]["mkdocstrings"]["handlers"]["python"]
    handler["paths"] = [str(ROOT / path) for path in handler["paths"]]
    settings["theme"] = {**project["theme"], "custom_dir": str(ROOT / project["theme"]["custom_dir"])}
    config.write_bytes(tomli_w.dumps({"project": settings}).encode())
    command = [
        str(Path(sys.executable).with_name("zensical")),
        "build",
        "--strict",
        "--config-file",
        str(config.resolve()),
    ]
    if subprocess.run(command, check=False, cwd=config.parent).returncode != 0:
        sys.exit("The site could not be built: see above.")


def arrange_search(html: Path) -> None:
    """Take the pages for contributors out of the index of the search, and let the search show an exact name first."""
    file = html / "search.json"
    index = json.loads(file.read_text())
    index["items"] = [item for item in index["items"] if item["path"][:1] != [NOT_SEARCHED]]
    file.write_text(json.dumps(index))
    (worker,) = (html / "assets" / "javascripts" / "workers").glob("search.*.js")
    worker.write_text(worker.read_text() + (ROOT / "tools" / "search.js").read_text())


def llms_text(project: dict[str, Any], nav: list[Any], docs: Path) -> str:
    """Return the list of all pages for language models: https://llmstxt.org."""
    lines = [f"# {project['site_name']}", "", f"> {project['site_description']}"]
    for entry in nav:
        ((title, value),) = entry.items()
        lines += ["", f"## {title}", ""]
        for page in pages_of(value):
            address = project["site_url"] + page.removesuffix(".md").removesuffix("index") + "/"
            lines.append(f"- [{title_of(docs / page)}]({address.replace('//', '/').replace(':/', '://')})")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
