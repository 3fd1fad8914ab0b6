"""Packages: of this process, and how those of a worker differ."""

from __future__ import annotations

import json
import platform
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest

from pyspark_kafka._client.options import (
    CertificateStore,
    ConnectionOptions,
    KerberosLogin,
    ReferredLogin,
    Secret,
    TlsOptions,
)
from pyspark_kafka._ops.diagnosis import FindingStatus
from pyspark_kafka._ops.diagnosis.steps.packages import (
    PACKAGES,
    compare_packages,
    describe_python,
    extras_of,
    installed_extras,
    judge_packages,
    judge_pyspark,
    packages_probe,
)
from pyspark_kafka.version import install_command


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
    assert remedy.endswith(f"/w/python -m {install_command(version='1.0')} pyarrow==20.0.")


def test_another_python_is_a_failure_and_another_patch_of_it_is_not() -> None:
    ((status, text, remedy),) = compare_packages(python("3.12.0"), python("3.11.9"))
    assert (status, text) == (FindingStatus.FAILED, "Python is 3.11.9 there and 3.12.0 on the driver.")
    assert "PYSPARK_PYTHON" in remedy


def test_worker_lacks_nothing_that_the_driver_lacks_too() -> None:
    assert compare_packages(python(pyspark=None), python(pyspark=None)) == []
    assert compare_packages(python(pyspark=None), python()) == []


def test_worker_is_described_with_the_pyspark_that_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.0.2-amzn-0")
    assert json.loads(packages_probe(PACKAGES)(None))["packages"]["pyspark"] == "4.0.2-amzn-0"


def test_missing_pyspark_is_information_and_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judge_packages(python(pyspark=None)).status in (FindingStatus.OK, FindingStatus.WARNING)
    assert list(judge_pyspark({"pyspark": "4.3.0"})) == []
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    (found,) = judge_pyspark({})
    assert found.status is FindingStatus.OK
    assert found.text == "There is no PySpark in this Python: commands and read_arrow work without it, queries do not."
    assert install_command("spark") in found.remedy


def test_pyspark_that_is_too_old_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").touch()
    (tmp_path / "pyspark" / "version.py").write_text("__version__ = '3.5.7'\n")
    monkeypatch.delitem(sys.modules, "pyspark")
    monkeypatch.syspath_prepend(tmp_path)
    (found,) = judge_pyspark({"pyspark": "3.5.7"})
    assert found.status is FindingStatus.FAILED
    assert found.text.startswith("PySpark 3.5.7 is here, and PySpark 4.0 or newer is needed")
    assert "Spark 4.0, 4.1, 4.2 or 4.3" in found.remedy


def test_two_distributions_with_the_same_files_are_a_warning() -> None:
    (found,) = judge_pyspark({"pyspark": "4.3.0", "pyspark-client": "4.2.0"})
    assert found.status is FindingStatus.WARNING
    assert found.text.startswith("pyspark 4.3.0 and pyspark-client 4.2.0 are both installed")
    assert found.remedy.endswith("-m pip uninstall pyspark pyspark-client.")


def test_options_name_the_packages_that_they_need() -> None:
    assert extras_of(ConnectionOptions((("a", 1),))) == []
    kerberos = ConnectionOptions((("a", 1),), security_protocol="SASL_SSL", login=KerberosLogin())
    assert [extra.module for extra in extras_of(kerberos)] == ["gssapi"]
    amazon = ReferredLogin(Secret("env:JAAS"), "AWS_MSK_IAM")
    store = TlsOptions(keystore=CertificateStore("client.p12", "PKCS12"))
    both = ConnectionOptions((("a", 1),), security_protocol="SASL_SSL", tls=store, login=amazon)
    assert [extra.extra for extra in extras_of(both)] == ["stores", "msk"]


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
