"""BUILD files are true: each module and each test file has one target, and the generator agrees."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tools import build_targets

FOLDERS = ("accounting", "mechanisms", "train", "benchmarks", "tests", "tools")


def targets(build: Path) -> list[tuple[str, str, list[str], list[str]]]:
    """Rule, name, sources and dependencies of each target; BUILD files parse as Python."""
    found: list[tuple[str, str, list[str], list[str]]] = []
    for node in ast.parse(build.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            values = {word.arg: ast.literal_eval(word.value) for word in node.value.keywords}
            if ast.unparse(node.value.func).startswith("py_"):
                found.append(
                    (
                        ast.unparse(node.value.func),
                        values["name"],
                        values.get("srcs", []),
                        values.get("deps", []),
                    )
                )
    return found


def python_files(root: Path) -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py"))


def test_each_file_has_exactly_one_target(repository_root: Path) -> None:
    files = python_files(repository_root)
    assert len(files) > 20
    for path in files:
        build = path.parent / "BUILD"
        assert build.is_file(), f"{build} is missing: run tools/build_targets.py --write"
        holders = [target for target in targets(build) if path.name in target[2]]
        assert len(holders) == 1, f"{path} is in {len(holders)} targets"
        rule, name, _, _ = holders[0]
        assert name == path.stem
        is_test = path.is_relative_to(repository_root / "tests") and path.name.startswith("test_")
        assert rule == ("py_test" if is_test else "py_library")


def test_no_target_names_a_file_that_is_gone(repository_root: Path) -> None:
    for folder in FOLDERS:
        for build in (repository_root / folder).rglob("BUILD"):
            if "bazel_shims" not in build.parts:
                for _, _, sources, _ in targets(build):
                    for source in sources:
                        assert source.startswith("//") or (build.parent / source).is_file(), (build, source)


def test_generator_has_nothing_to_change() -> None:
    assert build_targets.stale_files() == []


def test_accounting_depends_on_itself_alone(repository_root: Path) -> None:
    seen = 0
    for build in (repository_root / "accounting").rglob("BUILD"):
        for _, name, _, dependencies in targets(build):
            for label in dependencies:
                seen += 1
                assert re.match(r":|@pypi//|//src/exactdp($|/accounting($|[:/]))", label), (
                    build,
                    name,
                    label,
                )
    assert seen > 20


def small_tree(root: Path, files: dict[str, str]) -> Path:
    """A repository with the four folders and `files`."""
    (root / "requirements").mkdir()
    (root / "requirements/dev.txt").write_text("numpy==2.4.6\nabsl-py==2.5.1\npytest==9.2.0\n")
    for folder in ("accounting", "mechanisms", "train", "benchmarks", "tests", "tools"):
        (root / folder).mkdir()
    for folder in ("accounting", "mechanisms", "train", "benchmarks"):
        (root / folder / "__init__.py").write_text("")
    (root / "tests/conftest.py").write_text("")
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def dependencies(root: Path, folder: str, name: str) -> list[str]:
    """Dependencies of one generated target."""
    text = build_targets.build_files(root)[Path(folder) / "BUILD"]
    (root / folder / "BUILD").write_text(text)
    return next(target[3] for target in targets(root / folder / "BUILD") if target[1] == name)


def test_dependencies_follow_the_imports(tmp_path: Path) -> None:
    root = small_tree(
        tmp_path,
        {
            "accounting/alpha.py": "import math\nimport numpy\nfrom absl import app\nimport nolock\n",
            "accounting/pairs/__init__.py": "VALUE = 1\n",
            "accounting/pairs/beta.py": (
                "from typing import TYPE_CHECKING\nfrom exactdp.accounting import alpha\n"
                "from exactdp.accounting.pairs import VALUE\n"
                "if TYPE_CHECKING:\n    from exactdp.accounting import gamma\n"
            ),
            "accounting/gamma.py": "from exactdp.accounting.pairs.beta import x\n",
        },
    )
    assert dependencies(root, "accounting", "alpha") == ["//src/exactdp", "@pypi//absl_py", "@pypi//numpy"]
    assert dependencies(root, "accounting/pairs", "beta") == [
        ":__init__",
        "//src/exactdp",
        "//src/exactdp/accounting:alpha",
    ]
    assert dependencies(root, "accounting", "gamma") == [
        "//src/exactdp",
        "//src/exactdp/accounting/pairs:beta",
    ]


def test_import_inside_a_function_may_close_a_cycle(tmp_path: Path) -> None:
    root = small_tree(
        tmp_path,
        {
            "accounting/alpha.py": "def f():\n    from exactdp.accounting import beta\n    return beta\n",
            "accounting/beta.py": "from exactdp.accounting import alpha\n",
            "tests/test_alpha.py": "from exactdp.accounting import alpha\n",
        },
    )
    assert dependencies(root, "accounting", "alpha") == ["//src/exactdp"]
    assert dependencies(root, "accounting", "beta") == [":alpha", "//src/exactdp"]
    assert dependencies(root, "tests", "test_alpha") == [
        ":conftest",
        "//src/exactdp/accounting:alpha",
        "//src/exactdp/accounting:beta",
        "@pypi//pytest",
    ]


def test_import_cycle_is_refused(tmp_path: Path) -> None:
    root = small_tree(
        tmp_path,
        {
            "accounting/alpha.py": "from exactdp.accounting import beta\n",
            "accounting/beta.py": "from exactdp.accounting import alpha\n",
        },
    )
    with pytest.raises(SystemExit, match=r"import cycle: exactdp\.accounting\.alpha -> exactdp"):
        build_targets.build_files(root)


def test_missing_module_is_refused(tmp_path: Path) -> None:
    root = small_tree(tmp_path, {"accounting/alpha.py": "from exactdp.accounting_other import x\n"})
    with pytest.raises(SystemExit, match="does not exist"):
        build_targets.build_files(root)


def test_stale_files_are_named(tmp_path: Path) -> None:
    root = small_tree(tmp_path, {"accounting/alpha.py": "X = 1\n"})
    for path, text in build_targets.build_files(root).items():
        (root / path).write_text(text)
    assert build_targets.stale_files(root) == []
    (root / "accounting/beta.py").write_text("X = 1\n")
    (root / "train/empty").mkdir()
    (root / "train/empty/BUILD").write_text("")
    assert build_targets.stale_files(root) == ["accounting/BUILD", "train/empty/BUILD"]
