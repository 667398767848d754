"""The ways in which building the native library can go wrong."""

import math
import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackagePath, PathDistribution
from pathlib import Path

import pytest
from torch.utils import cpp_extension

from hornn.kernels import library
from kernels.tolerance import needs_compiler


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """A process that has not tried to build yet, an empty cache, and a compiler that is a given shell script."""
    monkeypatch.setattr(library, "_outcome", None)
    monkeypatch.setenv("HORNN_CACHE", str(tmp_path / "cache"))

    def compiler(script: str) -> Path:
        path = tmp_path / "compiler"
        path.write_text(f"#!/bin/sh\necho called >> {tmp_path}/calls\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("CXX", str(path))
        return tmp_path / "calls"

    return compiler


@pytest.mark.parametrize(
    "script",
    [
        "echo 'native.cpp: error: no licence today'; exit 1",
        pytest.param(
            'case "$*" in *native.cpp*) echo \'native.cpp: error: no licence today\'; exit 1;; esac; exec c++ "$@"',
            marks=needs_compiler,
        ),
    ],
    ids=["always", "only on our source"],
)
def test_a_compiler_that_fails(
    fresh: Callable[[str], Path], script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = fresh(script)
    reason = library.why_not()
    assert reason is not None
    assert (
        "cannot be built (native.cpp: error: no licence today): install a C++ compiler (g++ or clang)"
        in reason
    )
    assert "network.backend=eager" in reason
    assert "\n" not in reason
    before = calls.read_text()
    with pytest.raises(library.NativeError, match=r"(?s)eager\n.*no licence today"):
        library.operators()
    assert calls.read_text() == before, "a build that failed is not tried again"
    assert capsys.readouterr().err.count("building the native kernels (once") == 1


def test_no_compiler(
    fresh: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CXX", str(tmp_path / "no-such-compiler"))
    assert "no-such-compiler' is not found): install a C++ compiler" in str(library.why_not())
    monkeypatch.delenv("CXX")
    assert "no-such-compiler' is not found" in str(library.why_not()), "it is not looked for again"
    assert not capsys.readouterr().err


def test_a_program_that_is_no_compiler(
    fresh: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "false")
    assert str(library.why_not()) == (
        "the native kernels cannot be built (false --version ended with exit code 1): install a C++ compiler "
        "(g++ or clang), or set network.backend=eager"
    )
    assert capsys.readouterr().err.count("\n") == 1


def test_a_compiler_with_an_open_quote(fresh: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "g++ '")
    assert str(library.why_not()).startswith(
        """the native kernels cannot be built (CXX is "g++ '": No closing quotation): install a C++ compiler"""
    )


def test_ninja_is_found_where_its_package_says(
    fresh: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As in an environment above another one; where it is nowhere, it is what is missing, not a compiler."""
    fresh("exit 0")
    places = tmp_path / "packages" / "bin"
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(library, "files", lambda name: None)
    assert str(library.why_not()) == (
        "the native kernels cannot be built (ninja is not found): put it on the PATH, as `pip install ninja` does, "
        "or set network.backend=eager"
    )
    places.mkdir(parents=True)
    (places / "ninja").write_text("")
    record = PackagePath("bin/ninja")
    record.dist = PathDistribution(tmp_path / "packages" / "ninja.dist-info")
    monkeypatch.setattr(library, "files", lambda name: [record])
    with library._scripts_on_path():
        assert str(places) in os.environ["PATH"].split(os.pathsep)
    assert os.environ["PATH"] == str(tmp_path)


def test_no_home(fresh: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HORNN_CACHE")

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert "set HORNN_CACHE to one that can be written" in str(library.why_not())


def test_a_path_that_ninja_cannot_read(
    fresh: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = fresh("exit 0")
    monkeypatch.setenv("HORNN_CACHE", str(tmp_path / "a $ here"))
    said = library.why_not() or ""
    assert "has a $, which ninja takes for a variable): move the checkout or the cache" in said
    assert not calls.exists()


def test_threads_that_load_at_once_build_once(
    fresh: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    builds: list[int] = []
    monkeypatch.setattr(library, "build", lambda: time.sleep(0.05) or builds.append(1) or "operators")
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: library.why_not(), range(4))) == [None] * 4
    assert len(builds) == 1


@needs_compiler
def test_a_cache_that_cannot_be_written(
    fresh: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HORNN_CACHE", str(tmp_path / "file"))
    assert "set HORNN_CACHE to a folder that can be written" in str(library.why_not())


def test_a_library_that_the_system_does_not_load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As from a file system without programs: its words are told, not torch's."""
    monkeypatch.setenv("HORNN_CACHE", str(tmp_path))
    monkeypatch.setattr(library, "is_whole", lambda path: True)

    def load(path: str) -> None:
        raise OSError(f"Could not load this library: {path}") from OSError("failed to map segment")

    monkeypatch.setattr("torch.ops.load_library", load)
    with pytest.raises(
        library.NativeError, match=r"\(failed to map segment\): .* may run from \(no noexec\)"
    ):
        library.build()


def test_a_compiler_without_enough_memory(fresh: Callable[[str], Path]) -> None:
    fresh("echo 'virtual memory exhausted: Cannot allocate memory'; exit 1")
    assert str(library.why_not()) == (
        "the native kernels cannot be built (memory exhausted): the compiler needs about 1 GB of memory, once; give it "
        "that, or set network.backend=eager"
    )


BUILD = """
import torch
from hornn.kernels import library
from hornn.kernels.cross_entropy import native_nll
library._outcome = library.build(["-O0", "-fopenmp"])
print(float(native_nll(torch.zeros(1, 2), None, torch.tensor([0]))))
"""


# A compiler that compiles nothing twice; `.d` lists what a file was made of.
REMEMBERS = """#!/bin/sh
case "$*" in *" -o "*) ;; *) exec c++ "$@" ;; esac
words="$*"; made=${words##*-o }; made=${made%% *}; kept="$KEPT/$(basename $made)"
if [ -f "$kept" ]; then cp "$kept" $made; [ ! -f "$kept.d" ] || cp "$kept.d" $made.d; exit; fi
c++ "$@" && cp $made "$kept" && { [ ! -f $made.d ] || cp $made.d "$kept.d"; }
"""


def start_build(python: str, folder: Path) -> subprocess.Popen[str]:
    """A process that needs the kernels, of which each file is compiled once in a folder."""
    compiler, kept = folder / "compiler", folder / "kept"
    kept.mkdir(exist_ok=True)
    compiler.write_text(REMEMBERS)
    compiler.chmod(0o755)
    return subprocess.Popen(
        [python, "-c", BUILD],
        env={**os.environ, "HORNN_CACHE": str(folder / "cache"), "CXX": str(compiler), "KEPT": str(kept)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@needs_compiler
@pytest.mark.thorough
def test_processes_that_build_at_once(tmp_path: Path, forked_python: str) -> None:
    """One builds, the other waits.

    A build that was killed is begun anew, though torch would wait for its lock for ever; one that was cut short is
    built anew.
    """
    both = [start_build(forked_python, tmp_path) for _ in range(2)]
    outcomes = [process.communicate(timeout=300) for process in both]
    assert [float(out) for out, _ in outcomes] == pytest.approx([math.log(2)] * 2)
    assert sum(err.count("building the native kernels") for _, err in outcomes) == 1
    (library,) = tmp_path.glob("cache/*/native.so")
    assert not (library.parent / "build").exists()

    whole = library.read_bytes()
    library.unlink()
    (library.parent / "build").mkdir()
    (library.parent / "build" / "lock").touch()
    (library.parent / "build" / f"{library.parent.name}.so").write_bytes(whole[:1000])
    out, err = start_build(forked_python, tmp_path).communicate(timeout=300)
    assert float(out) == pytest.approx(math.log(2))
    assert "building the native kernels" in err

    library.write_bytes(whole[: len(whole) // 2])
    out, err = start_build(forked_python, tmp_path).communicate(timeout=300)
    assert float(out) == pytest.approx(math.log(2))
    assert err == "building the native kernels (the one in the cache is damaged, about 10 s) …\n"
    assert start_build(forked_python, tmp_path).communicate(timeout=300)[1] == ""


def test_a_disk_that_is_full_while_the_kernels_compile(
    fresh: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    fresh("echo \"as: Fatal error: can't write to native.o: 'No space left on device'\"; exit 1")
    reason = library.why_not()
    assert reason is not None
    assert "cannot be built (No space left on device): make room in " in reason
    assert "compiler" not in reason
    assert capsys.readouterr().err.count("\n") == 1


@needs_compiler
def test_a_checksum_that_is_no_text_is_a_damaged_one(
    fresh: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept = tmp_path / "native.so"
    kept.write_bytes(b"library")
    (tmp_path / "native.so.sha256").write_bytes(b"\xff\xfe")
    assert not library.is_whole(kept)


def test_torch_may_lie_in_a_folder_with_a_space(
    fresh: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torch hands the path of its libraries to a shell as it is."""
    fresh("exit 1")
    seen = []

    def load(*args: object, **options: object) -> None:
        seen.append(cpp_extension.TORCH_LIB_PATH)
        raise RuntimeError("error: enough")

    monkeypatch.setattr(cpp_extension, "load", load)
    monkeypatch.setattr(cpp_extension, "TORCH_LIB_PATH", "/my projects/lib")
    assert library.why_not() is not None
    assert seen == ["'/my projects/lib'"]
    assert cpp_extension.TORCH_LIB_PATH == "/my projects/lib"
