"""Data directories are opened by `storage/files.py` alone, so that memory can take its place."""

from __future__ import annotations

import ast

from ..support.sources import dotted, nodes, trees

FOLDERS = ("protocol", "storage", "coordinator", "broker")  # pipeline/ reads directories of others
# what opens a path, and which
OPENS_PATHS = {
    "storage/files.py": "data directories",
    "broker/emulation/releases.py": "facts within the package",
    "protocol/schema_files.py": "facts within the package",
    "broker/apis/__init__.py": "the names of its own modules",
    "protocol/stubs.py": "writes messages.pyi",
    "protocol/schema_cache.py": "what was made of the schemas, beside compiled modules",
    "broker/config/jaas_file.py": "the JAAS file that the configuration names",
    "broker/config/sources.py": "the configuration file",
    "broker/seed.py": "the file of seeds",
    "broker/lab/scenario/file.py": "the file of a scenario",
    "broker/log_file.py": "the files of the request log, of the audit log and of traces",
    "broker/tls/context.py": "a key for OpenSSL, which reads it from a file alone",
    "broker/tls/listener.py": "the files of a listener's stores",
}
OPENERS = {"open", "io.open", "codecs.open", "gzip.open"}
OPENING_METHODS = {
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
    "iterdir",
    "glob",
    "rglob",
    "get_data",
    "set_data",
}
PATHS_OF_OS = {
    "open", "fdopen", "listdir", "scandir", "walk", "stat", "lstat", "statvfs", "unlink", "remove", "rename", "replace",
    "mkdir", "makedirs", "rmdir", "removedirs", "truncate", "link", "symlink", "utime", "chmod", "access",
}  # fmt: skip


def opened_paths(tree: ast.Module) -> list[int]:
    """The lines of calls that open, look at or change something by its path."""
    found = []
    for node in nodes(tree):
        if not isinstance(node, ast.Call):
            continue
        called = dotted(node.func)
        module, _, last = called.rpartition(".")
        if (
            called in OPENERS
            or last in OPENING_METHODS
            or (module == "os" and last in PATHS_OF_OS)
            or (module == "os.path" and last in ("exists", "isfile", "isdir", "getsize", "getmtime"))
            or module in ("shutil", "tempfile")
        ):
            found.append(node.lineno)
    return found


def test_paths_are_opened_in_files_alone() -> None:
    found = {name: lines for name, tree in trees(*FOLDERS).items() if (lines := opened_paths(tree))}
    for name, lines in found.items():
        assert name in OPENS_PATHS, f"{name}:{lines[0]} opens a path"
    assert set(OPENS_PATHS) == set(found), "no longer opens a path, take it from the table"


def test_a_path_that_is_opened_is_found() -> None:
    source = "open('a'); os.unlink('b'); Path('c').read_text(); shutil.rmtree('d'); os.path.exists('e')"
    assert opened_paths(ast.parse(source.replace("; ", "\n"))) == [1, 2, 3, 4, 5]
    assert opened_paths(ast.parse("files.open('a'); os.path.join('a', 'b'); os.close(3)")) == []
