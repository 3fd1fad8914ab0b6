"""A file of Maven Central, got once for all runs: by Ivy, as Kafka is got, and checked by its checksum."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark_kafka.testing import jars
from pyspark_kafka.testing.cache import cache_directory
from pyspark_kafka.testing.java import find_java

_MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="pyspark-kafka" module="tests"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="{group}" name="{name}" rev="{version}" transitive="false" conf="default->*">
      <artifact name="{name}" type="{extension}" ext="{extension}"{classifier}/>
    </dependency>
  </dependencies>
</ivy-module>
"""


@dataclass(frozen=True)
class MavenFile:
    """One file, without what it depends on.

    Attributes:
        group: the group id.
        name: the artifact id.
        version: of the artifact.
        sha256: the checksum, in hexadecimal digits.
        extension: of the file's name.
        classifier: which of several files of the artifact; empty for the main one.
    """

    group: str
    name: str
    version: str
    sha256: str
    extension: str = "jar"
    classifier: str = ""


def get_once(wanted: MavenFile, name: str, unpack: Callable[[Path, Path], Path] | None = None) -> Path:
    """Return what the cache has under a name; put it there first if it is missing. One process does so at a time.

    Args:
        wanted: the file to get.
        name: in the cache; different for each version.
        unpack: takes the file and a directory for temporary files, and returns a path in that directory to keep in
            place of the file.

    Raises:
        AssertionError: the file cannot be got, or has another checksum.
    """
    cache = cache_directory()
    kept = cache / name
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # It has its name only once all of it is there.
        if not kept.exists():
            with tempfile.TemporaryDirectory(prefix=f".{wanted.name}-", dir=cache) as staging:
                fetched = _fetch(wanted, Path(staging))
                found = hashlib.sha256(fetched.read_bytes()).hexdigest()
                assert found == wanted.sha256, (
                    f"{wanted.name} has SHA-256 {found}, expected {wanted.sha256}: it was not used"
                )
                (fetched if unpack is None else unpack(fetched, Path(staging))).rename(kept)
    return kept


def _fetch(wanted: MavenFile, staging: Path) -> Path:
    module = staging / "ivy.xml"
    classifier = f' m:classifier="{wanted.classifier}"' if wanted.classifier else ""
    module.write_text(
        _MODULE.format(
            group=wanted.group,
            name=wanted.name,
            version=wanted.version,
            extension=wanted.extension,
            classifier=classifier,
        )
    )
    java = find_java()
    finished = subprocess.run(
        [
            java.executable,
            *jars.build_trust_flags(java, Path("/etc/ssl/certs/java/cacerts")),
            *jars.build_proxy_flags(os.environ),
            *("-jar", jars._ivy_jar()),
            *("-ivy", module),
            *("-cache", staging / "cache"),
            *("-types", wanted.extension),
            *("-retrieve", f"{staging}/[artifact].[ext]"),
        ],
        cwd=staging,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    fetched = staging / f"{wanted.name}.{wanted.extension}"
    assert fetched.is_file(), finished.stdout[-2000:]
    return fetched
