"""Packages: of this process, and how those of a worker differ."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_kafka.diagnosis import FindingStatus
from pyspark_kafka.diagnosis.steps.packages import (
    PACKAGES,
    compare_packages,
    describe_python,
    extras_of,
    installed_extras,
    judge_packages,
)
from pyspark_kafka.options import CertificateStore, ConnectionOptions, KerberosLogin, ReferredLogin, Secret, TlsOptions


def python(version: str = "3.11.2", **packages: str | None) -> dict[str, Any]:
    installed = {"pyspark-kafka": "1.0", "pyspark": "4.2.0", "pyarrow": "20.0"}
    for name, found in packages.items():
        installed[name.replace("_", "-")] = found  # type: ignore[assignment]
    return {"python": version, "executable": "/w/python", "packages": installed}


def test_own_python_is_described_with_every_package() -> None:
    told = describe_python((*PACKAGES, "no-such-package"))
    assert told["python"] == platform.python_version()
    assert told["executable"] == sys.executable
    assert [name for name, version in told["packages"].items() if version is None] == ["no-such-package"]


def test_packages_that_are_there_are_fine_and_missing_ones_are_named_with_the_command() -> None:
    assert judge_packages(python()).status in (FindingStatus.OK, FindingStatus.WARNING)
    lacking = judge_packages(python(pyarrow=None))
    assert lacking.status is FindingStatus.FAILED
    assert lacking.remedy == "Install them into /w/python: pip install pyarrow."


def test_the_same_packages_differ_in_nothing() -> None:
    assert compare_packages(python(), python("3.11.9")) == []


def test_another_version_of_this_package_or_of_pyspark_is_a_failure_and_of_others_a_warning() -> None:
    found = compare_packages(python(), python(pyspark_kafka="0.9", pyspark="4.1.0", pyarrow="19.0"))
    assert [status for status, _, _ in found] == [FindingStatus.FAILED, FindingStatus.FAILED, FindingStatus.WARNING]
    assert found[2][1:] == (
        "pyarrow is 19.0 there and 20.0 on the driver.",
        "Install pyarrow==20.0 into /w/python on all workers, or 19.0 on the driver.",
    )


def test_packages_that_a_worker_lacks_are_one_line_with_what_to_install() -> None:
    ((status, text, remedy),) = compare_packages(python(), python(pyspark_kafka=None, pyarrow=None))
    assert (status, text) == (FindingStatus.FAILED, "pyspark-kafka, pyarrow are not installed in /w/python.")
    assert remedy.startswith("Set PYSPARK_PYTHON, before the session is created, to a Python that has them")
    assert remedy.endswith("/w/python -m pip install pyspark-kafka==1.0 pyarrow==20.0.")


def test_another_python_is_a_failure_and_another_patch_of_it_is_not() -> None:
    ((status, text, remedy),) = compare_packages(python("3.12.0"), python("3.11.9"))
    assert (status, text) == (FindingStatus.FAILED, "Python is 3.11.9 there and 3.12.0 on the driver.")
    assert "PYSPARK_PYTHON" in remedy


def test_options_name_the_packages_that_they_need() -> None:
    assert extras_of(ConnectionOptions((("a", 1),))) == []
    kerberos = ConnectionOptions((("a", 1),), security_protocol="SASL_SSL", login=KerberosLogin())
    assert [extra.module for extra in extras_of(kerberos)] == ["gssapi"]
    amazon = ReferredLogin(Secret("env:JAAS"), "AWS_MSK_IAM")
    store = TlsOptions(keystore=CertificateStore("client.p12", "PKCS12"))
    both = ConnectionOptions((("a", 1),), security_protocol="SASL_SSL", tls=store, login=amazon)
    assert [extra.install for extra in extras_of(both)] == ["pyspark-kafka[stores]", "pyspark-kafka[msk]"]


def test_extra_is_installed_when_its_packages_and_their_extras_are(monkeypatch: pytest.MonkeyPatch) -> None:
    requirements = {
        "ours": [
            "pyarrow>=19",
            'fast>=1; extra == "json"',
            'spark[connect]<5; extra == "connect"',
            "gone; extra == 'kdc'",
        ],
        "spark": ["grpcio>=1; extra == 'connect'"],
        "fast": None,
        "grpcio": None,
    }

    def version(name: str) -> str:
        if name not in requirements:
            raise metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(metadata, "requires", requirements.get)
    monkeypatch.setattr(metadata, "version", version)
    extras = SimpleNamespace(get_all=lambda _: ["json", "connect", "kdc"])
    monkeypatch.setattr(metadata, "metadata", lambda _: extras)
    assert installed_extras("ours") == ["connect", "json"]
    del requirements["grpcio"]
    assert installed_extras("ours") == ["json"]


def test_package_that_is_not_installed_has_no_extras() -> None:
    assert installed_extras("no-such-package") == []
