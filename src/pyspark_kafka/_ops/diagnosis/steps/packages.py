"""Python and its packages: in this process, and how a worker differs."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any

from pyspark_kafka._connector.spark.processes.required_version import pyspark_version, require_pyspark
from pyspark_kafka._ops.diagnosis.findings import Finding, FindingStatus
from pyspark_kafka.errors import MissingDependencyError, SetupError
from pyspark_kafka.version import install_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark_kafka._client.options import ConnectionOptions

_OWN = "pyspark-kafka"
# By the names of their distributions.
PACKAGES = (_OWN, "pyspark", "pyarrow", "numpy", "kafka-python", "cramjam", "crc32c")
# What a worker must have in the driver's version: classes of these are pickled from one to the other.
_SAME = (_OWN, "pyspark")


@dataclass(frozen=True, slots=True)
class Extra:
    """A package that only some options need.

    Attributes:
        module: what is imported.
        extra: the extra of this package that brings it.
        why: the option that needs it.
    """

    module: str
    extra: str
    why: str


def judge_own_packages(connection: ConnectionOptions | None) -> Iterator[Finding]:
    """Judge the packages of this process, and the packages that the options need."""
    here = describe_python(PACKAGES)
    yield judge_packages(here)
    yield from judge_pyspark(_installed(("pyspark", "pyspark-client")))
    if connection is not None:
        yield from judge_extras(connection)


def describe_python(packages: tuple[str, ...]) -> dict[str, Any]:
    """Return this Python and the versions of packages, as values for JSON; None for a missing package."""
    told: dict[str, Any] = json.loads(packages_probe(packages)(None))
    if "pyspark" in packages:
        told["packages"]["pyspark"] = pyspark_version()
    return told


def packages_probe(packages: tuple[str, ...]) -> Callable[[object], str]:
    """Return a function that describes the Python that it runs in, as JSON.

    A function within a function is pickled with its code: it runs in a Python that lacks this package as well.
    """

    def describe(_: object) -> str:
        import importlib.metadata as installed  # noqa: PLC0415 - nothing of this module is there on a worker
        import json  # noqa: PLC0415
        import platform  # noqa: PLC0415
        import socket  # noqa: PLC0415
        import sys  # noqa: PLC0415

        versions: dict[str, str | None] = {}
        for name in packages:
            try:
                versions[name] = installed.version(name)
            except installed.PackageNotFoundError:
                versions[name] = None
        if "pyspark" in versions and "pyspark" in sys.modules:
            # Platforms have it without pip's metadata, or as another distribution.
            versions["pyspark"] = sys.modules["pyspark"].__version__
        told = {"python": platform.python_version(), "executable": sys.executable, "packages": versions}
        return json.dumps({**told, "host": socket.gethostname()})

    return describe


def installed_extras(package: str = "pyspark-kafka") -> list[str]:
    """Return the extras of a package all of whose requirements are installed, whatever their versions are."""
    try:
        named = metadata.metadata(package).get_all("Provides-Extra") or []
    except metadata.PackageNotFoundError:
        return []
    return sorted(extra for extra in named if _has_extra(package, extra, set()))


def _has_extra(package: str, extra: str, seen: set[tuple[str, str]]) -> bool:
    """Return whether the requirements of an extra are installed, and the requirements of the extras that it names."""
    if (package, extra) in seen:
        return True
    seen.add((package, extra))
    for requirement in metadata.requires(package) or ():
        what, _, condition = requirement.partition(";")
        if re.search(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]", condition) is None:
            continue
        named = re.match(r"\s*([\w.-]+)\s*(?:\[([^]]*)\])?", what)
        if named is None:
            continue
        try:
            metadata.version(named[1])
        except metadata.PackageNotFoundError:
            return False
        if not all(_has_extra(named[1], each.strip(), seen) for each in (named[2] or "").split(",") if each.strip()):
            return False
    return True


def judge_packages(here: Mapping[str, Any]) -> Finding:
    """Judge the packages of the driver's process. Pure, except for the variant of the codec."""
    from pyspark_kafka.records import codec_info  # noqa: PLC0415 - loads the codec

    missing = [name for name, version in here["packages"].items() if version is None and name != "pyspark"]
    facts = dict(here)
    named = ", ".join(f"{name} {version}" for name, version in here["packages"].items() if version and name in _SHOWN)
    text = f"Python {here['python']}, {named}."
    if missing:
        return Finding(
            "packages",
            FindingStatus.FAILED,
            f"{text} Not installed: {', '.join(missing)}.",
            f"Install them into {here['executable']}: {_install(dict.fromkeys(missing, ''))}.",
            facts,
        )
    codec = codec_info()
    facts["codec_compiled"] = codec.compiled
    if not codec.compiled:
        return Finding(
            "packages",
            FindingStatus.WARNING,
            f"{text} The record codec is not compiled: it is slow.",
            codec.hint,
            facts,
        )
    return Finding("packages", FindingStatus.OK, text, facts=facts)


_SHOWN = (_OWN, "pyspark", "pyarrow")


def judge_pyspark(installed: Mapping[str, str]) -> Iterator[Finding]:
    """Judge the PySpark of this process; that there is none is no fault, for a look at Kafka needs none.

    Args:
        installed: the versions of the distributions that have its files.
    """
    try:
        require_pyspark()
    except MissingDependencyError as error:
        text = "There is no PySpark in this Python: commands and read_arrow work without it, queries do not."
        yield Finding("packages", FindingStatus.OK, text, error.hint or "")
    except SetupError as error:
        yield Finding("packages", FindingStatus.FAILED, error.message, error.hint or "")
    if len(installed) > 1:
        named = " and ".join(f"{name} {version}" for name, version in installed.items())
        yield Finding(
            "packages",
            FindingStatus.WARNING,
            f"{named} are both installed: they have the same files, and the later installation has replaced them.",
            f"Uninstall both, then install the needed one again: {sys.executable} -m pip uninstall "
            f"{' '.join(installed)}.",
            dict(installed),
        )


def _installed(names: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def judge_extras(connection: ConnectionOptions) -> Iterator[Finding]:
    """Yield a finding for each package that the options need and this process lacks."""
    for extra in extras_of(connection):
        if importlib.util.find_spec(extra.module) is None:
            yield Finding(
                "packages",
                FindingStatus.FAILED,
                f"{extra.why} needs the package '{extra.module}', which is not installed.",
                f"Install it on the driver and on all workers: {install_command(extra.extra)}.",
                {"package": extra.module, "executable": sys.executable},
            )


def extras_of(connection: ConnectionOptions) -> list[Extra]:
    """Return the packages that the options of a connection need beyond the packages of every installation."""
    needed: list[Extra] = []
    stores = (("truststore", connection.tls.truststore), ("keystore", connection.tls.keystore))
    if connection.uses_tls:
        needed += [
            Extra("cryptography", "stores", f"kafka.ssl.{name}.type 'PKCS12'")
            for name, store in stores
            if store is not None and store.kind == "PKCS12"
        ]
    mechanism = connection.login.mechanism if connection.login is not None else ""
    if mechanism == "AWS_MSK_IAM":
        needed.append(Extra("aws_msk_iam_sasl_signer", "msk", "kafka.sasl.mechanism 'AWS_MSK_IAM'"))
    if mechanism == "GSSAPI":
        needed.append(Extra("gssapi", "kerberos", "kafka.sasl.mechanism 'GSSAPI'"))
    return needed


def _install(versions: Mapping[str, str]) -> str:
    """Return the command that installs packages, by name, in their versions if these are not empty."""
    others = [f"{name}=={version}" if version else name for name, version in versions.items() if name != _OWN]
    return " ".join((install_command(version=versions[_OWN]) if _OWN in versions else "pip install", *others))


def compare_packages(driver: Mapping[str, Any], worker: Mapping[str, Any]) -> list[tuple[FindingStatus, str, str]]:
    """Return the differences between the driver and a worker: severity, a sentence, and the remedy. Pure.

    Args:
        driver: as `describe_python` returns it.
        worker: the same, of a worker.
    """
    found: list[tuple[FindingStatus, str, str]] = []
    if _minor(driver["python"]) != _minor(worker["python"]):
        found.append(
            (
                FindingStatus.FAILED,
                f"Python is {worker['python']} there and {driver['python']} on the driver.",
                "Set PYSPARK_PYTHON to a Python of the driver's version on all workers.",
            )
        )
    missing = [name for name, ours in driver["packages"].items() if ours and worker["packages"].get(name) is None]
    if missing:
        command = _install({name: driver["packages"][name] for name in missing})
        found.append(
            (
                FindingStatus.FAILED,
                f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed in {worker['executable']}.",
                (
                    "Set PYSPARK_PYTHON, before the session is created, to a Python that has them on all workers, or "
                    f"install them: {worker['executable']} -m {command}."
                ),
            )
        )
    for name, ours in driver["packages"].items():
        theirs = worker["packages"].get(name)
        if ours is not None and theirs not in (None, ours):
            status = FindingStatus.FAILED if name in _SAME else FindingStatus.WARNING
            remedy = f"Install {name}=={ours} into {worker['executable']} on all workers, or {theirs} on the driver."
            found.append((status, f"{name} is {theirs} there and {ours} on the driver.", remedy))
    return found


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
