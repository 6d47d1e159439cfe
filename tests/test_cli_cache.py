"""The cache between runs: what makes an entry stale. (What damage does to it: test_cli_input.py.)"""

import importlib.util
import os

import pytest

from cfglint import cache, files

BUILDER = "def make(calls):\n    return lambda: calls.append(1) or len(calls)\n"


@pytest.fixture
def builder(tmp_path, monkeypatch):
    """A module of its own whose ``make(calls)`` returns a function to cache, which counts its calls."""
    monkeypatch.setenv("CFGLINT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "code" / "built_here.py"
    path.parent.mkdir()
    path.write_text(BUILDER)
    spec = importlib.util.spec_from_file_location("built_here", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return path, module.make([])


def test_the_same_sources_are_built_once(builder):
    _, build = builder
    assert [cache.cached("x", {"a": "1"}, build) for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("sources", [{"a": "2"}, {"b": "1"}, {"a": "1", "b": ""}, {}])
def test_other_sources_are_built_again(builder, sources):
    _, build = builder
    cache.cached("x", {"a": "1"}, build)
    assert cache.cached("x", sources, build) == 2
    assert cache.cached("x", sources, build) == 2


def test_another_version_builds_again(builder, monkeypatch):
    _, build = builder
    cache.cached("x", {"a": "1"}, build)
    monkeypatch.setattr(cache, "_STAMP", "0.0.0 another")
    assert cache.cached("x", {"a": "1"}, build) == 2


@pytest.mark.parametrize("name", ["built_here.py", "beside.py", "grammar.lark"])
def test_in_a_checkout_changed_code_builds_again(builder, name):
    path, build = builder
    cache.cached("x", {"a": "1"}, build)
    changed = path.with_name(name)
    changed.write_text(BUILDER)
    later = path.stat().st_mtime_ns + 10**9
    os.utime(changed, ns=(later, later))
    assert cache.cached("x", {"a": "1"}, build) == 2
    assert cache.cached("x", {"a": "1"}, build) == 2


def test_an_installed_package_looks_at_no_code(builder, monkeypatch):
    path, build = builder
    monkeypatch.setattr(cache, "_IN_CHECKOUT", False)
    cache.cached("x", {"a": "1"}, build)
    os.utime(path, ns=(0, 10**18 * 2))
    assert cache.cached("x", {"a": "1"}, build) == 1


def test_switched_off(builder, monkeypatch, tmp_path):
    _, build = builder
    monkeypatch.setenv("CFGLINT_CACHE", "")
    assert [cache.cached("x", {}, build) for _ in range(2)] == [1, 2]
    assert not (tmp_path / "cache").exists()


def test_an_edit_of_a_shipped_file_is_noticed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(files, "shipped_folder", lambda name: str(tmp_path / name))
    inner = tmp_path / "rules" / "frameworks"
    inner.mkdir(parents=True)
    (tmp_path / "rules" / "b.rules").write_text("let a = 1\n")
    (inner / "a.rules").write_text("let b = 1\n")
    (inner / "a.txt").write_text("no rules\n")
    before = files.shipped_changes("rules", ".rules")
    assert [path.rpartition("rules/")[2] for path in before] == ["b.rules", "frameworks/a.rules"]
    assert files.shipped_contents("rules", ".rules") == {
        "b.rules": b"let a = 1\n",
        "frameworks/a.rules": b"let b = 1\n",
    }
    assert files.shipped_changes("rules", ".rules") == before
    os.utime(inner / "a.rules", ns=(0, 1))
    assert files.shipped_changes("rules", ".rules") != before
    assert files.shipped_changes("nowhere", ".rules") == {}
