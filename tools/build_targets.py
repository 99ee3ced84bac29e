"""Writes the BUILD files from the import graph: a target for each module, a test for each test file.

    python tools/build_targets.py --write    writes every BUILD file
    python tools/build_targets.py --check    exits with 1 and the names of files that would change

The four folders of the package stand at the top of the tree and are reached as `src/exactdp/<folder>`, a
symbolic link, so that the import name and Bazel's path agree; `.bazelignore` hides the other path.
Imports under `if TYPE_CHECKING` are no dependencies. A cycle of imports at module level is an error here, as
it is for Bazel. An import inside a function that would close a cycle is left out of its module's target; each
test that reaches it names the module itself.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Each folder, and the folders that may depend on it besides itself and the tests.
LAYERS = {
    "accounting": ("mechanisms", "train", "benchmarks"),
    "mechanisms": ("train", "benchmarks"),
    "train": ("benchmarks",),
    "benchmarks": (),
}
DATA_SUFFIXES = (".toml", ".json", ".csv")
# Import names that differ from the name of the distribution.
DISTRIBUTIONS = {"absl": "absl_py", "flint": "python_flint", "yaml": "pyyaml"}
# Scripts that tests of other folders run, by folder.
ENTRY_POINTS = {"tests": "pytest_main.py", "tests/packaging": "accounting_boundary.py"}
HEADER = "# Written by tools/build_targets.py from the import graph; do not edit.\n"
READS_FILES = re.compile(r"importlib\.resources|import resources|__file__")


@dataclasses.dataclass(frozen=True)
class Module:
    """One Python file.

    Attributes:
      path: relative to the root.
      name: how it is imported.
      tree: its syntax tree.
      text: its source.
    """

    path: Path
    name: str
    tree: ast.Module
    text: str

    @property
    def folder(self) -> Path:
        """Its folder, relative to the root."""
        return self.path.parent

    @property
    def is_test(self) -> bool:
        """Whether pytest collects it."""
        return self.path.parts[0] == "tests" and self.path.name.startswith("test_")

    @property
    def is_slow(self) -> bool:
        """Whether all its tests carry the marker `slow`, by a module-wide mark or one by one."""
        marks = [
            ast.unparse(node.value)
            for node in self.tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        ]
        tests = [
            any("mark.slow" in ast.unparse(mark) for mark in node.decorator_list)
            for node in self.tree.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.lower().startswith("test")
        ]
        return any("mark.slow" in mark for mark in marks) or (bool(tests) and all(tests))

    @property
    def label(self) -> str:
        """Its Bazel label."""
        package = package_of(self.folder)
        return f"//{package}" if self.path.stem == self.folder.name else f"//{package}:{self.path.stem}"


def package_of(folder: Path) -> str:
    """The Bazel package of a folder."""
    return f"src/exactdp/{folder.as_posix()}" if folder.parts[0] in LAYERS else folder.as_posix()


def python_files(root: Path) -> list[Module]:
    """All modules, tests and tools."""
    modules: list[Module] = []
    for top in (*LAYERS, "tests", "tools"):
        for path in sorted((root / top).rglob("*.py")):
            relative = path.relative_to(root)
            parts = list(relative.with_suffix("").parts)
            if parts[-1] == "__init__":
                parts.pop()
            if top in LAYERS:
                parts.insert(0, "exactdp")
            text = path.read_text(encoding="utf-8")
            modules.append(Module(relative, ".".join(parts), ast.parse(text, str(relative)), text))
    return modules


def imported_names(module: Module) -> Iterator[tuple[bool, tuple[str, ...]]]:
    """What a module imports: whether inside a function, and what the name may mean, most specific first."""
    pending: list[tuple[ast.AST, bool]] = [(module.tree, False)]
    while pending:
        node, deferred = pending.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend((child, deferred) for child in node.orelse)
            continue
        inside = deferred or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        pending.extend((child, inside) for child in ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield deferred, (alias.name,)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.name.split(".")
                drop = node.level - (module.path.name == "__init__.py")
                base = ".".join([*parents[: len(parents) - drop], *([base] if base else [])])
            for alias in node.names:
                yield deferred, (f"{base}.{alias.name}", base)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # `python -m NAME` in a test, or importlib.import_module(NAME).
            if re.fullmatch(r"exactdp(\.\w+)+", node.value):
                yield True, ("string", node.value)


def closure(start: str, edges: dict[str, set[str]]) -> set[str]:
    """All that is reached from `start`, itself included."""
    seen, pending = {start}, [start]
    while pending:
        fresh = edges[pending.pop()] - seen
        seen |= fresh
        pending.extend(fresh)
    return seen


class Graph:
    """Modules and what each depends on."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.modules = python_files(root)
        self.by_name = {module.name: module for module in self.modules}
        lock = (root / "requirements/dev.txt").read_text(encoding="utf-8")
        self.locked = {
            re.sub(r"[-.]+", "_", line.partition("==")[0]).lower()
            for line in lock.splitlines()
            if "==" in line and not line.startswith("#")
        }
        self.inner: dict[str, set[str]] = {}
        self.outer: dict[str, set[str]] = {}
        later: dict[str, set[str]] = {}
        for module in self.modules:
            self.inner[module.name], later[module.name], self.outer[module.name] = self._resolve(module)
        self._refuse_cycles()
        # Imports inside functions join the graph one by one, those that close a cycle excepted.
        self.full = {name: self.inner[name] | later[name] for name in self.inner}
        for name in sorted(later):
            for other in sorted(later[name]):
                if name not in closure(other, self.inner):
                    self.inner[name].add(other)

    def _resolve(self, module: Module) -> tuple[set[str], set[str], set[str]]:
        inner, later, outer = set[str](), set[str](), set[str]()
        for deferred, names in imported_names(module):
            found = next((name for name in names if name in self.by_name), None)
            top = names[-1].split(".")[0]
            if found is not None:
                (later if deferred else inner).add(found)
            elif names[0] == "string" or names[-1] == "exactdp":
                continue
            elif top in ("exactdp", "tests", "tools"):
                raise SystemExit(f"{module.path} imports {names[-1]}, which does not exist")
            elif top not in sys.stdlib_module_names:
                distribution = DISTRIBUTIONS.get(top, top).lower()
                # What is not locked is optional: imported on demand, absent from the build.
                if distribution in self.locked:
                    outer.add(f"@pypi//{distribution}")
        return inner - {module.name}, later - inner - {module.name}, outer

    def _refuse_cycles(self) -> None:
        done: set[str] = set()

        def visit(name: str, path: tuple[str, ...]) -> None:
            if name in path:
                raise SystemExit("import cycle: " + " -> ".join([*path[path.index(name) :], name]))
            if name not in done:
                for other in sorted(self.inner[name]):
                    visit(other, (*path, name))
                done.add(name)

        for name in sorted(self.inner):
            visit(name, ())

    def data_folders(self) -> list[Path]:
        """Folders with packaged data."""
        return sorted(
            {
                path.parent.relative_to(self.root)
                for top in (*LAYERS, "tests")
                for suffix in DATA_SUFFIXES
                for path in (self.root / top).rglob(f"*{suffix}")
            }
        )

    def dependencies(self, module: Module) -> list[str]:
        """Labels that a module's target depends on, in buildifier's order."""
        names = set(self.inner[module.name])
        if module.is_test:
            names |= closure(module.name, self.full) - closure(module.name, self.inner)
        labels = {self.by_name[name].label for name in names} | self.outer[module.name]
        if module.path.parts[0] in LAYERS:
            labels.add("//src/exactdp")
        if module.is_test:
            labels |= {"//tests:conftest", "@pypi//pytest"}
        return sort_labels(shortened(labels, module.folder))

    def data(self, module: Module) -> list[str]:
        """Labels of files that a module opens."""
        folders: list[Path] = []
        if READS_FILES.search(module.text):
            folders = [
                folder
                for folder in self.data_folders()
                if folder.is_relative_to(module.folder) or (module.is_test and folder.parts[0] in LAYERS)
            ]
        return [":data" if folder == module.folder else f"//{package_of(folder)}:data" for folder in folders]


def shortened(labels: Iterable[str], folder: Path) -> list[str]:
    """Labels as the BUILD file of `folder` writes them."""
    package = package_of(folder)
    own = {f"//{package}": f":{folder.name}"}
    return [own.get(label, label).replace(f"//{package}:", ":") for label in labels]


def sort_labels(labels: Iterable[str]) -> list[str]:
    """Own package, own repository, other repositories; each by package, then by name."""
    return sorted(
        labels,
        key=lambda label: (not label.startswith(":"), label.startswith("@"), re.split(r"[:.]", label)),
    )


def listed(name: str, values: list[str]) -> str:
    """One attribute that is a list, as buildifier writes it; empty when there are no values."""
    if not values:
        return ""
    if len(values) == 1:
        return f'    {name} = ["{values[0]}"],\n'
    return f"    {name} = [\n" + "".join(f'        "{value}",\n' for value in values) + "    ],\n"


def target(graph: Graph, module: Module) -> str:
    """The rule of one module."""
    file = module.path.name
    if not module.is_test:
        return (
            f'py_library(\n    name = "{module.path.stem}",\n    srcs = ["{file}"],\n'
            + listed("data", sort_labels(graph.data(module)))
            + listed("deps", graph.dependencies(module))
            + ")\n"
        )
    # Tests of the tree itself look at files that no target holds, so they run under pytest alone.
    manual = module.is_slow or module.path.parts[1] == "packaging"
    arguments = [*(["-m", "slow"] if module.is_slow else []), f"$(location {file})"]
    return (
        f'py_test(\n    name = "{module.path.stem}",\n    size = "medium",\n'
        + listed("srcs", [file, "//tests:pytest_main.py"])
        + listed("args", arguments)
        + listed("data", sort_labels([*graph.data(module), "//:setup.cfg"]))
        + '    main = "//tests:pytest_main.py",\n'
        + ('    tags = ["manual"],\n' if manual else "")
        + listed("deps", graph.dependencies(module))
        + ")\n"
    )


def folder_text(graph: Graph, folder: Path) -> str:
    """The BUILD file of one folder."""
    modules = [module for module in graph.modules if module.folder == folder]
    top = folder.parts[0]
    rules = sorted({"py_test" if module.is_test else "py_library" for module in modules})
    whole = len(folder.parts) == 1 and top in LAYERS
    if whole:
        rules = sorted({*rules, "py_library"})
    blocks: list[str] = []
    if rules:
        names = ", ".join(f'"{rule}"' for rule in rules)
        blocks.append(f'load("@rules_python//python:defs.bzl", {names})\n')
    if top in LAYERS:
        users = sorted(f"//src/exactdp/{user}:__subpackages__" for user in (top, *LAYERS[top]))
        users = sort_labels(
            [*users, "//tests:__subpackages__", *(["//:__pkg__"] if top == "accounting" else [])]
        )
        blocks.append("package(\n" + listed("default_visibility", sort_labels(users)) + ")\n")
    else:
        blocks.append(
            "package(\n    default_testonly = True,\n"
            + listed("default_visibility", ["//tests:__subpackages__"])
            + ")\n"
        )
    if folder.as_posix() in ENTRY_POINTS:
        blocks.append(
            f'exports_files(\n    ["{ENTRY_POINTS[folder.as_posix()]}"],\n'
            + listed("visibility", ["//:__pkg__", "//tests:__subpackages__"])
            + ")\n"
        )
    if whole:
        every = [module.label for module in graph.modules if module.path.parts[0] == top]
        labels = sort_labels(shortened(every, folder))
        blocks.append(f'py_library(\n    name = "{top}",\n' + listed("deps", labels) + ")\n")
    if folder in graph.data_folders():
        files = sorted(path.name for path in (graph.root / folder).iterdir() if path.suffix in DATA_SUFFIXES)
        blocks.append('filegroup(\n    name = "data",\n' + listed("srcs", files) + ")\n")
    blocks.extend(target(graph, module) for module in modules)
    return HEADER + "\n" + "\n".join(blocks)


def build_files(root: Path = ROOT) -> dict[Path, str]:
    """Every BUILD file that is a function of the tree, by its path from the root."""
    graph = Graph(root)
    folders = {module.folder for module in graph.modules} | set(graph.data_folders())
    return {folder / "BUILD": folder_text(graph, folder) for folder in sorted(folders)}


def stale_files(root: Path = ROOT) -> list[str]:
    """BUILD files that differ from what the tree asks for, are missing, or stand where no code is."""
    wanted = build_files(root)
    present = {
        path.relative_to(root)
        for top in (*LAYERS, "tests", "tools")
        for path in (root / top).rglob("BUILD")
        if "bazel_shims" not in path.parts
    }
    changed = [
        path
        for path, text in wanted.items()
        if path not in present or (root / path).read_text(encoding="utf-8") != text
    ]
    return sorted(str(path) for path in {*changed, *(present - wanted.keys())})


def main() -> None:
    """Writes or checks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    stale = stale_files()
    if arguments.check:
        if stale:
            sys.exit("stale, run tools/build_targets.py --write: " + ", ".join(stale))
        return
    wanted = build_files()
    for name in stale:
        if Path(name) in wanted:
            (ROOT / name).write_text(wanted[Path(name)], encoding="utf-8")
        else:
            (ROOT / name).unlink()
        print(name)


if __name__ == "__main__":
    main()
