"""Machine code of `kernels`, made once by Numba and kept as a checked object file.

Numba's own cache is not used: it writes where it can (the home included), its files carry no checksum, a damaged one
raises or returns wrong numbers, and reading it requires importing Numba. Here Numba compiles, LLVM emits one object
file, and from then on llvmlite, on which Numba is built, loads that file by itself.

The file lies in `$JAHS_CACHE_DIR` if that is set, else where Python keeps the bytecode of this package
(`__pycache__`, or `$PYTHONPYCACHEPREFIX`), under Python's own rules: nothing is written if `sys.dont_write_bytecode`
is set. Where it cannot be written, each process compiles for itself. Its name holds a digest of everything that the
code depends on, so machines with different processors can share a home; its first bytes are the sha256 of the rest,
which detects damage, not forgery. So a file is run only if this user or root owns it and all folders above it, and
nobody else may write there; no user runs another user's kernels.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import os
import sys
import tempfile
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, NamedTuple

from jahs.errors import MissingDependency
from jahs.files.ownership import read_own_file, shared_fault
from jahs.models.forest import kernels

_log = logging.getLogger(__name__)

# Change it with the signatures or the way of compiling.
REVISION = 1
N_DIGEST = 32
_OWN_FOLDER = "give JAHS_CACHE_DIR a folder of your own that others may not write"
# External symbols that an object file may use: C's memory functions. LLVM emits them for loops, and finds them itself.
KNOWN_SYMBOLS = frozenset({"memset", "memcpy", "memmove"})

# i: int64, others: pointers to float32, int64, uint16, uint8.
SIGNATURES = {
    "answer_rows": "f i i q i q f q q q i h f f b f",
    "answer_walk": "f i i q i q f q q q i h f f q q q f",
}


class Native(NamedTuple):
    """The two kernels as foreign functions of addresses and integers; `keep` holds their code in memory."""

    answer_rows: Any  # ctypes types its functions at run time
    answer_walk: Any
    keep: object


@functools.cache
def native_kernels() -> Native:
    """Return the compiled kernels, from the cache or from Numba, once per process; MissingDependency without Numba."""
    # No lock: two threads that call this first do the work twice, and a fork in between does no harm.
    try:
        return _open()
    except MissingDependency:
        raise
    except ModuleNotFoundError as err:
        raise MissingDependency("Numba is not installed; pip install numba") from err
    except Exception as err:  # a Numba that does not match its environment may raise anything
        raise MissingDependency(
            f"the installed Numba does not work here: {err!r}; unset NUMBA_DISABLE_JIT if it is set, else "
            "pip install --upgrade numba, or do without it: engine='numpy'"
        ) from err


def _open() -> Native:
    import llvmlite.binding as llvm  # type: ignore[import-untyped, unused-ignore]  # ships no types

    path = cache_file(llvm)
    code = _read(path)
    if code is None:
        code = _compile(llvm)
        _write(path, code)
    return _load(llvm, code)


def cache_file(llvm: Any) -> Path:
    """Return the path of this machine's code."""
    depends_on = (
        str(REVISION),
        Path(kernels.__file__).read_text(encoding="utf-8"),
        repr(SIGNATURES),
        ".".join(map(str, llvm.llvm_version_info)),
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    )
    digest = hashlib.sha256("\0".join(depends_on).encode()).hexdigest()[:24]
    cache_dir = os.environ.get("JAHS_CACHE_DIR")
    folder = Path(cache_dir).expanduser().absolute() if cache_dir else Path(cache_from_source(kernels.__file__)).parent
    return folder / f"jahs-kernels-{digest}.o"


def _read(path: Path) -> bytes | None:
    """Return the object code, or None if it is missing, incomplete or not ours."""
    data = read_own_file(path)
    if data is None:
        return None
    if isinstance(data, str):
        _log.warning("%s is not run, for %s; recompiling: %s", path, data, _OWN_FOLDER)
        return None
    digest, code = data[:N_DIGEST], data[N_DIGEST:]
    if hashlib.sha256(code).digest() != digest:
        _log.warning("%s is damaged; recompiling", path)
        return None
    return code


def _write(path: Path, code: bytes) -> None:
    """Keep the object code if that is possible and wanted."""
    if sys.dont_write_bytecode and not os.environ.get("JAHS_CACHE_DIR"):
        return
    if (fault := shared_fault(path.parent)) is not None:
        _log.info(
            "compiled code is not kept at %s, for %s; each process compiles for itself: %s", path, fault, _OWN_FOLDER
        )
        return
    try:
        _make_folder(path.parent)
        handle, beside = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.chmod(beside, 0o644)  # noqa: PTH101  (others who use this installation may read it)
        os.replace(beside, path)  # noqa: PTH105
    except OSError as err:
        _log.info("compiled code cannot be kept at %s (%s); each process compiles for itself", path, err)


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, whatever the umask, so that nobody else may write them."""
    for path in (*reversed(folder.parents), folder):
        if not path.exists():
            path.mkdir(mode=0o755, exist_ok=True)


def _compile(llvm: Any) -> bytes:
    """Compile one object file with both kernels, for this machine's processor."""
    from numba import cfunc, types  # type: ignore[import-untyped, unused-ignore]  # ships no types

    if not hasattr(llvm, "create_pass_builder"):
        raise MissingDependency("the installed Numba is too old; pip install 'numba>=0.61'")
    pointer: Any = types.CPointer  # untyped
    letters: dict[str, Any] = {
        "i": types.int64,
        "f": pointer(types.float32),
        "q": pointer(types.int64),
        "h": pointer(types.uint16),
        "b": pointer(types.uint8),
    }
    _start_llvm(llvm)
    program = None
    for name, signature in SIGNATURES.items():
        arguments = [letters[letter] for letter in signature.split()]
        compiled = cfunc(types.int64(*arguments))(getattr(kernels, name))
        module = llvm.parse_assembly(compiled.inspect_llvm())
        for function in module.functions:
            if not function.is_declaration:
                function.linkage = llvm.Linkage.internal
        entry = module.get_function(compiled.native_name)
        entry.name = name
        entry.linkage = llvm.Linkage.external
        if program is None:
            program = module
        else:
            program.link_in(module)
    assert program is not None
    machine = llvm.Target.from_triple(program.triple).create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        codemodel="jitdefault",
        jit=True,
    )
    # LLVM now sees the whole program, finds that nothing raises, and drops Numba's error reporting.
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(program, passes)
    declared = {function.name for function in program.functions if function.is_declaration}
    foreign = sorted(name for name in declared if not name.startswith("llvm.") and name not in KNOWN_SYMBOLS)
    if foreign:
        raise MissingDependency(f"the installed Numba makes code that needs {', '.join(foreign)}; try another version")
    code: bytes = machine.emit_object(program)
    return code


def _load(llvm: Any, code: bytes) -> Native:
    _start_llvm(llvm)
    machine = llvm.Target.from_default_triple().create_target_machine(codemodel="jitdefault", jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    functions: dict[str, Any] = {}
    for name, signature in SIGNATURES.items():
        arguments = [ctypes.c_int64 if letter == "i" else ctypes.c_void_p for letter in signature.split()]
        # ctypes gives up the GIL during the call.
        functions[name] = ctypes.CFUNCTYPE(ctypes.c_int64, *arguments)(engine.get_function_address(name))
    return Native(keep=engine, **functions)


def _start_llvm(llvm: Any) -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
