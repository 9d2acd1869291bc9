import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from jahs.errors import MissingDependency
from jahs.models.forest import native_code, open_engine, save_forest
from jahs.models.forest.native_code import cache_file, native_kernels
from tests.jahs.models.forest.examples import random_forest, random_rows

pytest.importorskip("numba")
llvm = pytest.importorskip("llvmlite.binding")


@pytest.fixture
def code(monkeypatch):
    """The compiled code, and a compiler that only counts how often it is asked for it."""
    native_kernels()
    code = native_code._read(cache_file(llvm))
    assert code is not None
    asked = []
    monkeypatch.setattr(native_code, "_compile", lambda llvm: asked.append(1) or code)
    return code, asked


def opened_anew():
    """What a fresh process does, without the process."""
    return native_kernels.__wrapped__()


def test_code_is_kept_where_it_is_asked_for_and_read_from_there(code, monkeypatch, tmp_path):
    monkeypatch.setenv("JAHS_CACHE_DIR", str(tmp_path / "new" / "folder"))
    opened_anew()
    opened_anew()
    assert len(code[1]) == 1
    (file,) = (tmp_path / "new" / "folder").iterdir()
    assert file == cache_file(llvm)
    assert file.read_bytes() == hashlib.sha256(code[0]).digest() + code[0]


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "other"])
def test_damaged_code_is_never_run(damage, code, monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("JAHS_CACHE_DIR", str(tmp_path))
    opened_anew()
    path = cache_file(llvm)
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 1
    path.write_bytes({"flip": data, "cut": data[:-1], "empty": b"", "other": b"x" * 5000}[damage])
    opened_anew()
    assert len(code[1]) == 2
    assert "is damaged; recompiling" in caplog.text
    opened_anew()
    assert len(code[1]) == 2, "the file was healed"


def test_a_place_that_cannot_be_written_is_no_fault(code, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("JAHS_CACHE_DIR", str(tmp_path / "file" / "folder"))
    opened_anew()
    opened_anew()
    assert len(code[1]) == 2


def test_nothing_is_written_where_python_writes_no_bytecode(code, monkeypatch, tmp_path):
    monkeypatch.delenv("JAHS_CACHE_DIR")
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    opened_anew()
    assert list(tmp_path.rglob("*")) == []
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    opened_anew()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [cache_file(llvm)]


def test_another_processor_has_code_of_its_own(monkeypatch):
    here = cache_file(llvm)
    monkeypatch.setattr(llvm, "get_host_cpu_name", lambda: "a-processor")
    assert cache_file(llvm) != here


@pytest.mark.parametrize("module", ["llvmlite", "numba"])
def test_without_numba_the_answers_are_the_same(module, monkeypatch, tmp_path):
    monkeypatch.setenv("JAHS_CACHE_DIR", str(tmp_path))
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("jahs.models.forest.compiled_engine.native_kernels", opened_anew)
    rng = np.random.default_rng(0)
    forest = random_forest(rng)
    with pytest.raises(MissingDependency, match=r"pip install numba"):
        open_engine(forest, "compiled")
    engine = open_engine(forest)
    assert engine.name == "numpy"
    X = random_rows(rng, 9)
    monkeypatch.undo()
    np.testing.assert_array_equal(engine.predict(X), open_engine(forest, "compiled").predict(X))


def test_a_numba_that_is_too_old_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("JAHS_CACHE_DIR", str(tmp_path))
    monkeypatch.delattr(llvm, "create_pass_builder")
    with pytest.raises(MissingDependency, match=r"numba>=0\.61"):
        opened_anew()


@pytest.mark.parametrize("step", ["_compile", "_load"])
def test_a_numba_that_fails_is_a_missing_one(step, monkeypatch, tmp_path):
    def fail(*_arguments):
        raise AttributeError("no such thing")

    monkeypatch.setenv("JAHS_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(native_code, step, fail)
    monkeypatch.setattr("jahs.models.forest.compiled_engine.native_kernels", opened_anew)
    forest = random_forest(np.random.default_rng(0))
    with pytest.raises(MissingDependency, match=r"AttributeError\('no such thing'\).*engine='numpy'") as caught:
        open_engine(forest, "compiled")
    assert isinstance(caught.value.__cause__, AttributeError)
    assert open_engine(forest).name == "numpy"


def test_a_numba_that_breaks_on_import_is_a_missing_one(monkeypatch, tmp_path):
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "__init__.py").write_text("raise SystemError('built for another numpy')")
    monkeypatch.setenv("JAHS_CACHE_DIR", str(tmp_path))
    for name in [name for name in sys.modules if name.split(".")[0] == "numba"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingDependency, match="built for another numpy"):
        opened_anew()


def test_a_process_whose_numba_must_not_compile_answers_with_numpy(tmp_path):
    save_forest(random_forest(np.random.default_rng(0)), tmp_path / "forest.npz")
    script = "from jahs.models.forest import open_engine, parse_forest\nimport pathlib, sys\n"
    script += "path = pathlib.Path(sys.argv[1])\n"
    script += "print(open_engine(parse_forest(path, path.read_bytes())).name)"
    command = [sys.executable, "-c", script, tmp_path / "forest.npz"]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "JAHS_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert done.stdout == "numpy\n"


SCRIPT = """
import sys, time
from pathlib import Path
from jahs.models.forest import open_engine, parse_forest
import numpy as np
path = Path(sys.argv[1])
engine = open_engine(parse_forest(path, path.read_bytes()))
engine.predict(np.zeros((1, 4), np.float32))
assert engine.name == "compiled"
assert "numba" not in sys.modules
print(time.process_time())
"""


def test_a_fresh_process_answers_within_a_second_and_without_numba(tmp_path):
    native_kernels()
    save_forest(random_forest(np.random.default_rng(0)), tmp_path / "forest.npz")
    command = [sys.executable, "-c", SCRIPT, tmp_path / "forest.npz"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert float(done.stdout) < 1
