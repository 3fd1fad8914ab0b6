"""The jars of Apache Kafka: resolved once, verified against a pinned list, kept in the user's cache.

The Ivy that ships inside PySpark does the resolving, run as a program: neither Maven nor a Scala build is needed, and
pyspark is not imported.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import logging
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pyspark_kafka.errors import SetupError
from pyspark_kafka.testing.cache import cache_directory
from pyspark_kafka.testing.java import Java, find_java, is_of_wheel

JARS_VARIABLE = "PYSPARK_KAFKA_JARS"
IVY_SETTINGS_VARIABLE = "PYSPARK_KAFKA_IVY_SETTINGS"
DEFAULT_VERSION = "4.3.0"

_SCALA_VERSION = "2.13"
# Where Debian and Red Hat keep the machine's certificates for Java.
_SYSTEM_TRUST_STORE = Path("/etc/ssl/certs/java/cacerts")
_RESOLVE_TIMEOUT_S = 900
# Kafka logs through slf4j 1 and brings no binding; without one a broker that fails to start says nothing.
_LOG_BINDINGS = {
    "3": ("org.slf4j", "slf4j-reload4j", "1.7.36"),
    "4": ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
}
_LOG = logging.getLogger(__name__)


def kafka_classpath(version: str = DEFAULT_VERSION, *, progress: Callable[[str], None] | None = None) -> str:
    """Return the class path of a Kafka broker, getting its jars first when they are not here.

    The first time takes about half a minute and 44 MB from Maven Central. Each time all jars are hashed, in a fraction
    of a JVM's start time, as others may be able to write to the cache. Processes that need it at the same time wait
    for each other. A set with a damaged, missing or extra jar is replaced.

    With `PYSPARK_KAFKA_JARS=directory` the jars of that directory are used as they are. With
    `PYSPARK_KAFKA_IVY_SETTINGS=file` Ivy reads that settings file, for a mirror.

    Args:
        version: Apache Kafka's version; one of those with a list of checksums in this package.
        progress: called with one line when a download begins; None logs it.

    Raises:
        SetupError: no Java, no registry, a checksum that differs, or a version without a list.
    """
    own = os.environ.get(JARS_VARIABLE)
    if own:
        directory = Path(own).expanduser().resolve()
        if not any(directory.glob(f"kafka_{_SCALA_VERSION}-*.jar")):
            raise SetupError(
                f"{JARS_VARIABLE} names {directory}, which holds no kafka_{_SCALA_VERSION}-<version>.jar.",
                condition="KAFKA_JARS_MISSING",
                hint="Name a directory with all jars of a Kafka broker, such as libs/ of a Kafka download.",
                parameters={"directory": directory},
            )
    else:
        directory = _cached_jars(version, progress or _LOG.info)
    return str(directory / "*")


def class_archive(version: str, java: Java) -> Path:
    """Return where the loaded classes of such a broker are kept, for brokers that are up in about half the time.

    Nothing here makes the file; where it does not fit the Java or the jars, the JVM goes without. It is code: see
    `is_own`.

    Raises:
        SetupError: when there is no cache directory.
    """
    return cache_directory() / f"kafka-{version}-classes-java{java.version}.jsa"


def is_own(file: Path) -> bool:
    """Return whether a file exists, was written by this user or root, and is writable by nobody else."""
    try:
        found = file.stat()
    except OSError:
        return False
    return found.st_uid in (os.getuid(), 0) and not found.st_mode & 0o022


def pinned_checksums(version: str) -> dict[str, str]:
    """Read the jars of a version and their SHA-256 from this package: file name to hexadecimal digest.

    Raises:
        SetupError: when the version has no list.
    """
    # Looked up among the files that are there, never made into a path.
    listings = {path.name[len("kafka-") : -len(".sha256")]: path for path in Path(__file__).parent.glob("*.sha256")}
    if version not in listings:
        known = ", ".join(sorted(listings))
        raise SetupError(
            f"There is no list of checksums for Apache Kafka {version!r}; there are lists for {known}.",
            condition="KAFKA_VERSION_UNKNOWN",
            hint=f"Use one of these, or set {JARS_VARIABLE} to a directory with the jars of {version}.",
            parameters={"version": version},
        )
    return parse_checksums(listings[version].read_text())


def parse_checksums(text: str) -> dict[str, str]:
    r"""Read what `sha256sum` writes: file name to digest.

    Example:
        >>> parse_checksums("00ff  a.jar\n")
        {'a.jar': '00ff'}
    """
    return {name: digest for digest, name in (line.split() for line in text.splitlines() if line.strip())}


def build_ivy_module(version: str) -> str:
    """Build the ivy.xml of a broker and its logging."""
    binding = _LOG_BINDINGS.get(version.split(".", 1)[0])
    wanted = [("org.apache.kafka", f"kafka_{_SCALA_VERSION}", version), *([binding] if binding else [])]
    dependencies = "".join(
        f'    <dependency org="{org}" name="{name}" rev="{rev}" conf="default->default"/>\n'
        for org, name, rev in wanted
    )
    return (
        '<ivy-module version="2.0">\n'
        '  <info organisation="pyspark-kafka" module="broker"/>\n'
        '  <configurations><conf name="default"/></configurations>\n'
        f"  <dependencies>\n{dependencies}  </dependencies>\n"
        "</ivy-module>\n"
    )


def build_proxy_flags(environment: Mapping[str, str]) -> list[str]:
    """Turn `https_proxy`, `http_proxy` and `no_proxy` into the flags of a JVM, which does not read them.

    Example:
        >>> build_proxy_flags({"https_proxy": "http://proxy:3128", "no_proxy": "localhost,.corp"})
        ['-Dhttps.proxyHost=proxy', '-Dhttps.proxyPort=3128', '-Dhttp.nonProxyHosts=localhost|*.corp']
    """
    flags: list[str] = []
    for scheme in ("https", "http"):
        named = environment.get(f"{scheme}_proxy") or environment.get(f"{scheme}_proxy".upper())
        if named:
            # Without a scheme, the host would be read as one.
            proxy = urlsplit(named if "//" in named else f"//{named}")
            flags += [f"-D{scheme}.proxyHost={proxy.hostname}", f"-D{scheme}.proxyPort={proxy.port or 80}"]
    excluded = environment.get("no_proxy") or environment.get("NO_PROXY")
    if flags and excluded:
        hosts = [host.strip() for host in excluded.split(",") if host.strip()]
        flags.append("-Dhttp.nonProxyHosts=" + "|".join(f"*{host}" if host.startswith(".") else host for host in hosts))
    return flags


def _cached_jars(version: str, progress: Callable[[str], None]) -> Path:
    checksums = pinned_checksums(version)
    cache = cache_directory()
    directory = cache / f"kafka-{version}"
    if directory.exists() and _find_mismatch(directory, checksums) is None:
        return directory
    with _locked(cache / f"kafka-{version}.lock"):
        # Another process may have done it while this one waited.
        if directory.exists() and _find_mismatch(directory, checksums) is None:
            return directory
        progress(f"Getting Apache Kafka {version} ({len(checksums)} jars, once, into {directory})")
        with tempfile.TemporaryDirectory(prefix=f".kafka-{version}-", dir=cache) as staging:
            fetched = Path(staging) / "jars"
            _resolve(version, Path(staging), fetched)
            mismatch = _find_mismatch(fetched, checksums)
            if mismatch is not None:
                raise SetupError(
                    f"The jars of Apache Kafka {version} are not the expected ones: {mismatch}. They were not used.",
                    condition="KAFKA_JARS_CHECKSUM",
                    hint=f"Check the registry or mirror, or set {JARS_VARIABLE} to a directory with jars you trust.",
                    parameters={"version": version},
                )
            if directory.exists():
                # A directory cannot be renamed over one that has content: out of the way first, and gone with staging.
                directory.rename(Path(staging) / "damaged")
            fetched.rename(directory)
    return directory


def _resolve(version: str, staging: Path, target: Path) -> None:
    """Resolve all jars of a broker into `target`, with Ivy."""
    module = staging / "ivy.xml"
    module.write_text(build_ivy_module(version))
    settings = os.environ.get(IVY_SETTINGS_VARIABLE)
    java = find_java()
    command = [
        str(java.executable),
        *build_trust_flags(java, _SYSTEM_TRUST_STORE),
        *build_proxy_flags(os.environ),
        "-jar",
        str(_ivy_jar()),
        *(["-settings", str(Path(settings).expanduser().resolve())] if settings else []),
        "-ivy",
        str(module),
        "-cache",
        str(staging / "ivy-cache"),
        # Some of the jars are OSGi bundles, which Ivy does not count among jars.
        "-types",
        "jar",
        "bundle",
        "-retrieve",
        f"{target}/[artifact]-[revision].[ext]",
    ]
    try:
        finished = subprocess.run(  # noqa: S603 - Java and Ivy of this installation
            command,
            cwd=staging,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_RESOLVE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unavailable(version, str(error)) from error
    if finished.returncode != 0 or not target.is_dir():
        raise _unavailable(version, _explain_ivy(finished.stdout))


def build_trust_flags(java: Java, store: Path) -> list[str]:
    """Return flags that make the Java of a wheel trust the machine's authorities.

    It has certificates of its own, and none that an administrator has added; a Java of the machine finds them itself.
    """
    return [f"-Djavax.net.ssl.trustStore={store}"] if is_of_wheel(java) and store.is_file() else []


def _explain_ivy(output: str) -> str:
    """Pick the lines of Ivy's output that say what went wrong, at most three."""
    lines = [line.strip().lstrip(":").strip() for line in output.splitlines()]
    telling = [line for line in lines if any(word in line for word in ("error", "ERROR", "Exception", "not found"))]
    return " | ".join((telling or [line for line in lines if line])[-3:])


def _unavailable(version: str, why: str) -> SetupError:
    return SetupError(
        f"The jars of Apache Kafka {version} could not be downloaded: {why}.",
        condition="KAFKA_JARS_UNAVAILABLE",
        hint="Check the network and the proxy (https_proxy);"
        f" for a mirror set {IVY_SETTINGS_VARIABLE} to an Ivy settings file;"
        f" without a network set {JARS_VARIABLE} to a directory with the jars of a Kafka broker.",
        retriable=True,
        parameters={"version": version},
    )


def _ivy_jar() -> Path:
    """Find the Ivy jar inside PySpark without importing it."""
    found = importlib.util.find_spec("pyspark")
    for location in (found.submodule_search_locations if found else None) or ():
        for jar in sorted(Path(location, "jars").glob("ivy-*.jar")):
            return jar
    raise SetupError(
        "The Ivy that ships inside PySpark was not found, so the jars of Apache Kafka cannot be downloaded.",
        condition="IVY_NOT_FOUND",
        hint=f"Install pyspark (not pyspark-client), or set {JARS_VARIABLE} to a directory with the jars.",
    )


def _find_mismatch(directory: Path, checksums: Mapping[str, str]) -> str | None:
    """Return how the jars of a directory differ from the list; None when they do not."""
    # As a class path of a whole directory has them: in either case of the letters.
    present = {path.name for path in directory.iterdir() if path.name.lower().endswith(".jar")}
    for name in sorted(checksums.keys() - present):
        return f"{name} is missing"
    for name in sorted(present - checksums.keys()):
        return f"{name} is not on the list"
    for name, expected in sorted(checksums.items()):
        found = hashlib.sha256((directory / name).read_bytes()).hexdigest()
        if found != expected:
            return f"{name} has SHA-256 {found}, expected {expected}"
    return None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock among processes; the system frees it when the holder dies."""
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
