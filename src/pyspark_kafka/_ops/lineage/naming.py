"""The names of jobs and runs, as OpenLineage's agent for Spark makes them. Pure.

Source: OpenLineage `io.openlineage.spark.api.naming.JobNameBuilder`, `NameNormalizer`,
`io.openlineage.spark.agent.ArgumentParser`.
"""

from __future__ import annotations

import json
import re
import unicodedata
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka._ops.lineage.values import JobRun, ParentRun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Setting = Callable[[str], str | None]

_AGENT = "io.openlineage.spark.agent.OpenLineageSparkListener"
_PREFIX = "spark.openlineage."


@dataclass(frozen=True, slots=True)
class ApplicationNames:
    """The names that all queries of a session have in common.

    Attributes:
        namespace: of their jobs.
        application: the first part of their jobs' names.
        parent: the run that has started them; None if that is not known.
        appends_topic: whether a job's name ends with the topic that it writes.
    """

    namespace: str
    application: str
    parent: ParentRun | None = None
    appends_topic: bool = True

    def job_name(self, command: str, topic: str | None) -> str:
        """Return the name of a job: application, command and written topic.

        Args:
            command: the name of what Spark executes, such as `AppendData`.
            topic: the topic that is written; None if there are several, or none.
        """
        suffix = topic.replace(".", "_") if topic and self.appends_topic else None
        return ".".join(part for part in (self.application, normalized(command), suffix) if part)


def normalized(name: str) -> str:
    """Return a name in small letters, its words joined by underscores: `write_to_data_source_v2`."""
    trimmed = re.sub(r"\W+$", "", re.sub(r"^\W+", "", name, flags=re.ASCII), flags=re.ASCII)
    plain = "".join(each for each in unicodedata.normalize("NFKD", trimmed) if not unicodedata.combining(each))
    plain = re.sub(r"([a-z])([A-Z])", r"\1 \2", plain)
    plain = re.sub(r"(?<!^)([A-Z])([a-z])", r" \1\2", plain)
    plain = re.sub(r"(\d)([A-Z])", r"\1 \2", plain)
    return re.sub(r"[^a-zA-Z0-9]+", "_", plain.lower())


def application_names(setting: Setting, environment: Mapping[str, str]) -> ApplicationNames:
    """Return the names of a session's queries, by the settings of OpenLineage's agent for Spark.

    If the agent runs, and `spark.openlineage.applicationRunId` names its run of the application, this run is the
    parent, as of the agent's own jobs. Otherwise the settings or the environment name the parent.

    Args:
        setting: returns a setting of Spark by its name; None if it is not set.
        environment: the variables of the process.
    """
    namespace = setting(f"{_PREFIX}namespace") or environment.get("OPENLINEAGE_NAMESPACE") or "default"
    application = normalized(setting(f"{_PREFIX}appName") or setting("spark.app.name") or "") or "unknown"
    given = _of_context(setting) or _of_settings(setting) or _of_environment(environment)
    run_id = setting(f"{_PREFIX}applicationRunId")
    parent = given
    if has_agent(setting) and _is_uuid(run_id):
        run = JobRun(namespace, application, str(run_id))
        parent = ParentRun(run, given.root if given else run)
    return ApplicationNames(
        namespace, application, parent, (setting(f"{_PREFIX}jobName.appendDatasetName") or "true").lower() != "false"
    )


def has_agent(setting: Setting) -> bool:
    """Return whether OpenLineage's agent for Spark listens to the application."""
    listeners = (setting("spark.extraListeners") or "").split(",")
    return _AGENT in [each.strip() for each in listeners] and setting(f"{_PREFIX}disabled") != "true"


def _of_context(setting: Setting) -> ParentRun | None:
    try:
        parent = json.loads(setting(f"{_PREFIX}context") or "null")["parent"]
        run = _run_of(parent)
        return ParentRun(run, _run_of(parent["root"]) if parent.get("root") else run)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _run_of(part: Mapping[str, Any]) -> JobRun:
    job = part["job"]
    return JobRun(str(job["namespace"]), str(job["name"]), str(uuid.UUID(part["run"]["runId"])))


def _of_settings(setting: Setting) -> ParentRun | None:
    def named(prefix: str) -> JobRun | None:
        parts = [setting(f"{_PREFIX}{prefix}{name}") for name in ("JobNamespace", "JobName", "RunId")]
        namespace, name, run_id = parts
        return JobRun(namespace, name, str(run_id)) if namespace and name and _is_uuid(run_id) else None

    parent = named("parent")
    return ParentRun(parent, named("rootParent") or parent) if parent else None


def _of_environment(environment: Mapping[str, str]) -> ParentRun | None:
    parent = _of_text(environment.get("OPENLINEAGE_PARENT_ID"))
    if parent is None:
        return None
    return ParentRun(parent, _of_text(environment.get("OPENLINEAGE_ROOT_PARENT_ID")) or parent)


def _of_text(text: str | None) -> JobRun | None:
    """Return the run that a text `namespace/job/run` names; a namespace or a job may have slashes in neither."""
    parts = (text or "").split("/")
    return JobRun(*parts) if len(parts) == 3 and all(parts) and _is_uuid(parts[2]) else None


def _is_uuid(text: str | None) -> bool:
    try:
        uuid.UUID(text or "")
    except ValueError:
        return False
    return True
