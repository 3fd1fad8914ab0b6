"""The location of a checkpoint as Spark reads it: a path without a scheme is on Hadoop's default file system.

On a YARN cluster this is usually HDFS, and the local disk of a driver would be lost with its container.
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


def on_default_file_system(location: str, default: str | None = None) -> str:
    """Return the location of a checkpoint with its scheme, if it is an absolute path and the default is not local.

    Runs on: driver; may read a file of Hadoop's settings.

    Args:
        location: as the user has set it.
        default: the URI of the default file system; None for the one in the settings that the environment names.

    Source: Hadoop `Path.makeQualified`, Spark `ResolveWriteToStream`.
    """
    if not location.startswith("/"):
        return location
    found = urlsplit(configured_default(os.environ) if default is None else default)
    if found.scheme in {"", "file"}:
        return location
    return f"{found.scheme}://{found.netloc}{quote(location)}"


def configured_default(environment: Mapping[str, str]) -> str:
    """Return `fs.defaultFS` of Hadoop's settings; empty if they do not set it."""
    for folder in filter(None, map(environment.get, _FOLDERS)):
        try:
            root = ET.parse(Path(folder, "core-site.xml")).getroot()  # noqa: S314 - settings of the machine
        except (OSError, ET.ParseError):
            continue
        for entry in root.iter("property"):
            if entry.findtext("name", "").strip() == "fs.defaultFS":
                return entry.findtext("value", "").strip()
    return ""
