"""The files of deploy/kubernetes: what Spark's own client makes of them, at an API server that only takes notes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from kit.pointers import REPO
from kit.programs.submitted import SPARK

pytestmark = pytest.mark.full("Clusters")
kubernetes_validate = pytest.importorskip("kubernetes_validate")

FOLDER = REPO / "deploy" / "kubernetes"
# The oldest version of Kubernetes that the package of schemas and Spark 4.2 both know.
VERSIONS = ("1.33", kubernetes_validate.latest_version())


class ApiServer(ThreadingHTTPServer):
    """It creates everything that it is sent, and keeps it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.created: list[dict[str, Any]] = []

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.created if each["kind"] == kind]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ApiServer

    def do_POST(self) -> None:
        created = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.created.append(json.loads(json.dumps(created)))
        created["metadata"]["uid"] = str(len(self.server.created))
        text = json.dumps(created).encode()
        self.send_response(201)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_PATCH = do_POST  # noqa: N815 - the name of the base class

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def api_server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


def test_submission_creates_a_driver_that_has_the_secret_as_files(tmp_path: Path) -> None:
    with api_server() as server:
        submitted = subprocess.run(
            [FOLDER / "submit.sh", "--conf", "spark.kubernetes.submission.waitAppCompletion=false"],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            cwd=tmp_path,
            env={
                **os.environ,
                "SPARK_HOME": str(SPARK),
                "API_SERVER": f"http://127.0.0.1:{server.server_port}",
                # No configuration of a cluster that the machine has.
                "KUBECONFIG": str(tmp_path / "none"),
            },
        )
        assert submitted.returncode == 0, submitted.stderr[-4000:]
        for version in VERSIONS:
            for each in server.created:
                kubernetes_validate.validate(each, version, strict=True)
        (pod,) = server.of_kind("Pod")
        (settings,) = server.of_kind("ConfigMap")
        assert len(server.of_kind("Service")) == 1
    (container,) = pod["spec"]["containers"]
    assert container["image"] == "registry.example/pyspark-kafka:0.2.0"
    assert container["args"][-5] == "local:///opt/app/query.py"
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert {"mountPath": "/mnt/kafka", "name": "kafka-user-volume"} in container["volumeMounts"]
    assert {"name": "kafka-user-volume", "secret": {"secretName": "kafka-user"}} in pod["spec"]["volumes"]
    # Executors get theirs by a setting.
    assert "spark.kubernetes.executor.secrets.kafka-user=/mnt/kafka" in settings["data"]["spark.properties"]


def test_application_of_the_operator_is_the_submitted_one() -> None:
    application = yaml.safe_load((FOLDER / "application.yaml").read_text())
    script = (FOLDER / "submit.sh").read_text()
    spec = application["spec"]
    assert f"SPARK_VERSION={spec['sparkVersion']}\n" in (FOLDER / "Dockerfile").read_text()
    assert f":={spec['image']}}}" in script
    assert spec["mainApplicationFile"] in script
    assert all(f":={argument}}}" in script for argument in spec["arguments"])
    assert all(f"{name}={value}" in script for name, value in spec["sparkConf"].items())
    for role in ("driver", "executor"):
        (secret,) = spec[role]["secrets"]
        assert f":={secret['name']}}}" in script
        assert secret["path"] == "/mnt/kafka"
        assert spec[role]["securityContext"]["runAsNonRoot"] is True
        # A part of a pod, by the schema of pods.
        container = {"name": role, "image": spec["image"], "securityContext": spec[role]["securityContext"]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": role}, "spec": {"containers": [container]}}
        for version in VERSIONS:
            kubernetes_validate.validate(pod, version, strict=True)


def test_image_has_no_finding_of_hadolint_and_ends_as_a_user_without_rights() -> None:
    program = Path(sys.executable).with_name("hadolint")
    checked = subprocess.run([program, FOLDER / "Dockerfile"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    users = [line for line in (FOLDER / "Dockerfile").read_text().splitlines() if line.startswith("USER ")]
    assert users[-1] == "USER 185"
