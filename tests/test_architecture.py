"""The shape of the house: the import arrow, the label wall, the size of files and functions."""

import ast
import subprocess
import sys
from pathlib import Path

import agents

ROOT = Path(__file__).parent.parent
PACKAGES = ("agents", "claims", "harness", "tools")
SOURCES = [path for name in (*PACKAGES, "tests") for path in sorted((ROOT / name).rglob("*.py"))]


def test_imports_follow_the_arrow_and_no_tool_or_agent_can_reach_a_label() -> None:
    linter = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_linter_does_see_a_breach(tmp_path: Path) -> None:
    for name in PACKAGES:
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "tools").unlink()
    (tmp_path / "tools").mkdir()
    for path in sorted((ROOT / "tools").glob("*.py")):
        (tmp_path / "tools" / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "tools" / "peek.py").write_text("from claims.labels import Label\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text(encoding="utf-8"), encoding="utf-8")
    linter = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([linter, "--no-cache"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "tools.peek -> claims.labels" in done.stdout


def test_the_package_agents_is_ours_and_no_installed_namesake() -> None:
    assert Path(agents.__file__).parent == ROOT / "agents"


def test_no_file_is_longer_than_300_lines() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {str(path): n for path, n in lengths.items() if n > 300} == {}


def test_no_function_is_longer_than_60_lines() -> None:
    long = [
        f"{path}:{node.lineno} {node.name}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno - node.lineno >= 60  # type: ignore[operator]
    ]
    assert long == []


def test_every_hook_is_in_the_one_module_that_owns_them() -> None:
    hooked = {
        path.relative_to(ROOT).as_posix()
        for path in SOURCES
        if path.parts[-2] != "tests" and "register_forward" in path.read_text(encoding="utf-8")
    }
    assert hooked <= {"tools/activations.py"}
