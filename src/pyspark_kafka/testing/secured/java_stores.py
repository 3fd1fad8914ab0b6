"""Java's own key stores (JKS), written by a Java's keytool: nothing else writes them."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from pyspark_kafka.errors import SetupError
from pyspark_kafka.testing.java import find_java

if TYPE_CHECKING:
    from pathlib import Path

_TIMEOUT_S = 60
# Also in a Java that has no bin/keytool.
_KEYTOOL = ("-m", "java.base/sun.security.tools.keytool.Main")


def convert_to_jks(pkcs12: Path, target: Path, password: str) -> None:
    """Write a JKS store with the entries of a PKCS #12 store and the same password; about 1 s.

    Raises:
        SetupError: there is no Java, or it refuses the store.
    """
    command = [str(find_java().executable), *_KEYTOOL, "-importkeystore", "-noprompt"]
    command += ["-srckeystore", str(pkcs12), "-srcstoretype", "PKCS12", "-srcstorepass:env", "STORE_PASSWORD"]
    command += ["-destkeystore", str(target), "-deststoretype", "JKS", "-deststorepass:env", "STORE_PASSWORD"]
    finished = subprocess.run(  # noqa: S603 - the user's own java
        command,
        env={**os.environ, "STORE_PASSWORD": password},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=_TIMEOUT_S,
        check=False,
    )
    if finished.returncode:
        raise SetupError(
            f"Java's keytool cannot make a JKS store: {finished.stdout.strip()[-300:]}.",
            condition="STORE_NOT_MADE",
            hint="Use a store of type PKCS12.",
        )
    target.chmod(0o600)
