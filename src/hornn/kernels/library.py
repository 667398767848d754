"""The library of `native.cpp`: compiled for this machine on first use, loaded from a cache ever after.

Its kernels compute on the CPU what the readable code computes for the same parameters: in fp32, but for products in
training. The library lies in the folder that the environment variable HORNN_CACHE names, or
else in `~/.cache/hornn/kernels`. Its folder's name is a hash of all that decides its contents. Beside it lies its
checksum: a library that was cut short would end the process on loading, without a word, so it is built anew.
"""

import fcntl
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from hornn.data.download import checksum
from hornn.machine import processor_flags
from hornn.writing import FULL, write_atomically

SOURCE = Path(__file__).with_name("native.cpp")
INCLUDED = tuple(sorted(SOURCE.parent.glob("*.h")))
FLAGS = ("-O3", "-march=native", "-fopenmp")
NO_MEMORY = ("memory exhausted", "out of memory", "Cannot allocate memory", "Killed signal")  # of compilers
REMEDY = "install a C++ compiler (g++ or clang), or set network.backend=eager"


class NativeError(ValueError):
    """The native kernels cannot be built or loaded. Its first line says why and what to do about it."""


_lock = threading.Lock()
_outcome: Any = None  # the operators once they are loaded, or the NativeError that will not be tried again


def why_not() -> str | None:
    """None if the kernels can be used (they are loaded then), else the reason in one line."""
    try:
        operators()
    except NativeError as error:
        return str(error).partition("\n")[0]
    return None


def operators() -> Any:
    """The operators of the library, loaded or built where they are not yet. NativeError if that fails."""
    global _outcome
    with _lock:
        if _outcome is None:
            try:
                _outcome = build()
            except NativeError as error:
                _outcome = error
    if isinstance(_outcome, NativeError):
        raise NativeError(str(_outcome))
    return _outcome


def build(flags: Sequence[str] = FLAGS) -> Any:
    """The operators compiled with `flags`: from the cache, or built into it, by one process at a time."""
    code = (path.read_text("utf-8") for path in (SOURCE, *INCLUDED))
    parts = (*code, " ".join(flags), torch.__version__, _processor())
    namespace = "hornn_" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    library = cache_folder() / namespace / "native.so"
    try:
        if not is_whole(library):
            _require_compiler()
            library.parent.mkdir(parents=True, exist_ok=True)
            with (library.parent / "build.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not is_whole(library):
                    _compile(library, namespace, flags)
        torch.ops.load_library(str(library))
    except OSError as error:
        raise NativeError(
            f"the native kernels cannot be written to or loaded from {library.parent} ({error.__cause__ or error}): "
            "delete it, set HORNN_CACHE to a folder that can be written and that programs may run from (no noexec), or "
            "set network.backend=eager"
        ) from error
    return getattr(torch.ops, namespace)


def cache_folder() -> Path:
    """Where libraries are kept. NativeError where neither HORNN_CACHE nor the user's home says it."""
    try:
        return Path(os.environ.get("HORNN_CACHE") or Path.home() / ".cache" / "hornn" / "kernels").absolute()
    except RuntimeError as error:
        raise NativeError(
            f"there is no folder for the native kernels ({error}): set HORNN_CACHE to one that can be written, or set "
            "network.backend=eager"
        ) from error


def is_whole(library: Path) -> bool:
    """Whether a library is there and has the checksum that was written when it was built."""
    written = checksum_file(library)
    return (
        library.exists() and written.exists() and written.read_bytes() == checksum(library, "sha256").encode()
    )


def checksum_file(library: Path) -> Path:
    return library.with_name(f"{library.name}.sha256")


def _compile(library: Path, namespace: str, flags: Sequence[str]) -> None:
    """Make `library`, which appears whole or not at all. Only for the one who holds the lock."""
    from torch.utils import cpp_extension  # imports setuptools: slow, and needed only here

    folder = library.parent / "build"
    for path in (SOURCE, folder):
        if "$" in str(path):
            raise NativeError(
                f"the native kernels cannot be built ({path} has a $, which ninja takes for a variable): move the "
                "checkout or the cache to another folder, or set network.backend=eager"
            )
    # A build that was killed leaves a lock file that torch would wait for.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    why = "the one in the cache is damaged" if library.exists() else "once"
    print(f"building the native kernels ({why}, about 10 s) …", file=sys.stderr, flush=True)
    try:
        # torch hands this path to a shell as it is
        quoted = shlex.quote(cpp_extension.TORCH_LIB_PATH)
        with _scripts_on_path(), patch.object(cpp_extension, "TORCH_LIB_PATH", quoted):
            cpp_extension.load(
                namespace,
                [str(SOURCE)],
                extra_cflags=[*flags, "-Wno-psabi", f"-DHORNN_NAMESPACE={namespace}"],
                extra_ldflags=[flag for flag in flags if flag == "-fopenmp"],
                build_directory=str(folder),
                with_cuda=False,
                is_python_module=False,
            )
    except (RuntimeError, subprocess.CalledProcessError, ImportError) as error:
        said = error.output.decode() if isinstance(error, subprocess.CalledProcessError) else str(error)
        if full := next((words for words in map(os.strerror, FULL) if words in said), ""):
            raise NativeError(
                f"the native kernels cannot be built ({full}): make room in {folder.parent} and in "
                f"{tempfile.gettempdir()}, set HORNN_CACHE to another folder, or set network.backend=eager"
            ) from error
        if short := next((words for words in NO_MEMORY if words in said), ""):
            raise NativeError(
                f"the native kernels cannot be built ({short}): the compiler needs about 1 GB of memory, once; give it "
                "that, or set network.backend=eager"
            ) from error
        if "Ninja is required" in said:
            raise NativeError(
                "the native kernels cannot be built (ninja is not found): put it on the PATH, as `pip install ninja` "
                "does, or set network.backend=eager"
            ) from error
        lines = [line for line in said.splitlines() if line.strip()] or [str(error)]
        last = [line for line in lines if not line.startswith(("ninja:", "[", "FAILED:"))][-5:] or lines[-1:]
        reason = next((line for line in last if "error" in line), last[-1])
        if isinstance(error, subprocess.CalledProcessError) and "error" not in reason:
            # what it said is no reason
            reason = f"{' '.join(map(str, error.cmd))} ended with exit code {error.returncode}"
            raise NativeError(f"the native kernels cannot be built ({reason}): {REMEDY}") from error
        detail = "\n".join(last)
        print(detail, file=sys.stderr, flush=True)
        raise NativeError(f"the native kernels cannot be built ({reason}): {REMEDY}\n{detail}") from error
    built = next(folder.glob("*.so"))
    library.unlink(missing_ok=True)
    write_atomically(checksum_file(library), checksum(built, "sha256"))
    os.replace(built, library)
    shutil.rmtree(folder, ignore_errors=True)


def _require_compiler() -> None:
    compiler = os.environ.get("CXX", "c++")
    try:
        program = [*shlex.split(compiler), ""][0]
    except ValueError as error:  # a quote that is open
        raise NativeError(
            f"the native kernels cannot be built (CXX is {compiler!r}: {error}): {REMEDY}"
        ) from error
    if shutil.which(program) is None:
        raise NativeError(
            f"the native kernels cannot be built (no compiler: {compiler!r} is not found): {REMEDY}"
        )


@contextmanager
def _scripts_on_path() -> Iterator[None]:
    """`ninja` was installed beside this Python, or where its package says; neither need be on the PATH."""
    path = os.environ.get("PATH", "")
    recorded: list[str] = []
    with suppress(PackageNotFoundError):
        recorded = [
            str(Path(str(file.locate())).parent) for file in files("ninja") or () if file.name == "ninja"
        ]
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), *recorded, path])
    try:
        yield
    finally:
        os.environ["PATH"] = path


def _processor() -> str:
    """What `-march=native` depends on, as far as the system tells."""
    return f"{platform.machine()} {' '.join(processor_flags()) or platform.processor()}"


def require_floats(**tensors: Tensor | None) -> None:
    """Raise ValueError, which names the tensor, unless all that are given are fp32 on the CPU."""
    for name, tensor in tensors.items():
        if tensor is not None and (tensor.dtype != torch.float32 or tensor.device.type != "cpu"):
            raise ValueError(
                f"the native kernels take fp32 on the CPU, got {tensor.dtype} on {tensor.device} for {name}: "
                "set network.backend=eager for anything else"
            )
