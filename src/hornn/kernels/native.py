"""The CPU kernels of `native.cpp`: compiled for this machine on first use, loaded from a cache ever after.

They compute what the readable code computes (`hornn.cells`, `hornn.heads`, `hornn.optim`), in fp32, for the same
parameters. The library lies in the folder that the environment variable HORNN_CACHE names, or else in
`~/.cache/hornn/kernels`. Its folder's name is a hash of all that decides its contents.
"""

import fcntl
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hornn.cells.base import ACTIVATIONS
from hornn.checks import require_choice

POOLINGS = ("sum", "max", "gated")
SOURCE = Path(__file__).with_name("native.cpp")
FLAGS = ("-O3", "-march=native", "-fopenmp")
REMEDY = "install a C++ compiler (g++ or clang), or set network.backend=deferred"


class NativeError(ValueError):
    """The native kernels cannot be built or loaded. Its first line says why and what to do about it."""


_lock = threading.Lock()
_outcome: Any = None  # the operators once they are loaded, or the NativeError that will not be tried again


def load() -> None:
    """Load the kernels, building them where they are not in the cache. NativeError if that fails."""
    _operators()


def why_not() -> str | None:
    """None if the kernels can be used (they are loaded then), else the reason in one line."""
    try:
        load()
    except NativeError as error:
        return str(error).partition("\n")[0]
    return None


def _operators() -> Any:
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
    parts = (SOURCE.read_text("utf-8"), " ".join(flags), torch.__version__, _processor())
    namespace = "hornn_" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("HORNN_CACHE") or Path.home() / ".cache" / "hornn" / "kernels")
    library = cache.absolute() / namespace / "native.so"
    try:
        if not library.exists():
            _require_compiler()
            library.parent.mkdir(parents=True, exist_ok=True)
            with (library.parent / "build.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not library.exists():
                    _compile(library, namespace, flags)
        torch.ops.load_library(str(library))
    except OSError as error:
        raise NativeError(
            f"the native kernels cannot be written to or loaded from {library.parent} ({error}): delete it, "
            "set HORNN_CACHE to a folder that can be written, or set network.backend=deferred"
        ) from error
    return getattr(torch.ops, namespace)


def _compile(library: Path, namespace: str, flags: Sequence[str]) -> None:
    """Make `library`, which appears whole or not at all. Only for the one who holds the lock."""
    from torch.utils import cpp_extension  # imports setuptools: slow, and needed only here

    folder = library.parent / "build"
    shutil.rmtree(
        folder, ignore_errors=True
    )  # a build that was killed, with the lock file torch would wait for
    folder.mkdir()
    print("building the native kernels (once, about 10 s) …", file=sys.stderr, flush=True)
    try:
        with _scripts_on_path():
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
        lines = [line for line in said.splitlines() if line.strip()] or [str(error)]
        last = [line for line in lines if not line.startswith(("ninja:", "[", "FAILED:"))][-5:] or lines[-1:]
        reason = next((line for line in last if "error" in line), last[-1])
        detail = "\n".join(last)
        print(detail, file=sys.stderr, flush=True)
        raise NativeError(f"the native kernels cannot be built ({reason}): {REMEDY}\n{detail}") from error
    os.replace(next(folder.glob("*.so")), library)
    shutil.rmtree(folder, ignore_errors=True)


def _require_compiler() -> None:
    compiler = os.environ.get("CXX", "c++")
    if shutil.which((shlex.split(compiler) or [""])[0]) is None:
        raise NativeError(
            f"the native kernels cannot be built (no compiler: {compiler!r} is not found): {REMEDY}"
        )


@contextmanager
def _scripts_on_path() -> Iterator[None]:
    """`ninja` was installed beside this Python, which need not be on the PATH."""
    path = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), path])
    try:
        yield
    finally:
        os.environ["PATH"] = path


def _processor() -> str:
    """What `-march=native` depends on, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    features = next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
    return f"{platform.machine()} {features}"


class NativeScan(torch.autograd.Function):
    """The scan of the Elman network and of the higher-order cells over a chunk.

        sum     h_t = f(u_t + sum_{n=1..K} W_h[n-1] h_{t-n})
        max     h_t = f(u_t + max_{n=1..K} W_h[n-1] h_{t-n})         (element-wise; the first of equals)
        gated   h_t = f(u_t + sum_{n=1..K} r_n * W_h[n-1] h_{t-n}),   r_n = sigmoid(u_tn + W_g2[n-1] h_{t-n})

    `apply(u, history, W_h, W_g2, pooling, activation, max_norm=None)` -> y (T, B, H) and the last states (K, B, H),
    newest first.
    u (T, B, H) is what `project_input` gives; for gated pooling (T, B, (1 + K) H), the state's part, then the
    gates' for n = 1..K. history (K, B, H), newest first; W_h (K, H, H); W_g2 (K, H, H), None unless gated. FOFE is
    sum pooling with alpha^n W_h[n-1]; order 1 is the Elman network. `max_norm`, for sum pooling of one state, bounds
    the gradient that flows back into each state (`hornn.scan.scan`).

    The backward pass runs back through time for the gradients of the states alone; each weight's gradient is then
    one product over all steps and columns. Where no gradient is wanted nothing is kept.
    Raises ValueError for tensors that are not fp32 on the CPU or do not fit together, NativeError where there
    are no kernels.
    """

    @classmethod
    def apply(
        cls,
        u: Tensor,
        history: Tensor,
        W_h: Tensor,
        W_g2: Tensor | None,
        pooling: str,
        activation: str,
        max_norm: float | None = None,
    ) -> tuple[Tensor, Tensor]:
        require_choice("pooling", pooling, POOLINGS)
        require_choice("activation", activation, ACTIVATIONS)
        _require_floats(u=u, history=history, W_h=W_h, W_g2=W_g2)
        K, B, H = history.shape if history.ndim == 3 else (0, 0, 0)
        G = (1 + K) * H if pooling == "gated" else H
        expected = {"u": (len(u), B, G), "history": (K, B, H), "W_h": (K, H, H)}
        if pooling == "gated":
            expected["W_g2"] = (K, H, H)
        given = {"u": u, "history": history, "W_h": W_h, "W_g2": W_g2}
        found = {name: tuple(tensor.shape) for name, tensor in given.items() if tensor is not None}
        if found != expected or 0 in (*expected["u"], K):
            raise ValueError(
                "a native scan takes u (T, B, G), history (K, B, H), W_h (K, H, H), all sizes >= 1, and for gated "
                f"pooling, with G = (1 + K) H instead of H, W_g2 (K, H, H); got {pooling} pooling with {found}"
            )
        if max_norm is not None and (pooling != "sum" or K > 1):
            raise ValueError(
                f"a native scan bounds the gradient of one state, with sum pooling, got {pooling} of {K}"
            )
        result: tuple[Tensor, Tensor] = super().apply(
            u, history, W_h, W_g2, pooling, activation, max_norm, torch.is_grad_enabled()
        )
        return result

    @staticmethod
    def forward(
        ctx: Any,
        u: Tensor,
        history: Tensor,
        W_h: Tensor,
        W_g2: Tensor | None,
        pooling: str,
        activation: str,
        max_norm: float | None,
        training: bool,
    ) -> tuple[Tensor, Tensor]:
        history, W_h = history.contiguous(), W_h.contiguous()
        W_g2 = None if W_g2 is None else W_g2.contiguous()
        keep = training and any(ctx.needs_input_grad)
        y, *kept = _operators().scan(
            u.contiguous(), history, W_h, W_g2, pooling, activation, keep, torch.get_num_threads()
        )
        if keep:
            ctx.save_for_backward(y, history, W_h, W_g2, *kept)
            ctx.constants = pooling, activation, max_norm
        order = len(history)
        return y, torch.cat([y[-order:].flip(0), history])[:order]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_y: Tensor, grad_last: Tensor) -> tuple[Tensor | None, ...]:
        _, needs_history, *needs_weights = ctx.needs_input_grad[:4]
        u, history, W_h, W_g2 = _operators().scan_backward(
            grad_y.contiguous(),
            grad_last.contiguous(),
            *ctx.saved_tensors,
            *ctx.constants,
            needs_history,
            any(needs_weights),
            torch.get_num_threads(),
        )
        needed = zip(ctx.needs_input_grad, (u, history, W_h, W_g2), strict=False)
        return *(grad if needs else None for needs, grad in needed), None, None, None, None


class NativeLstm(torch.autograd.Function):
    """The scan of the LSTM (`hornn.cells.lstm.Lstm`) over a chunk.

    `apply(u, h, c, W_h, max_norm=None)` -> y (T, B, H) and the last h and c (B, H). u (T, B, 4 H) is what
    `project_input` gives and W_h (4 H, H), both with the blocks i, f, g, o; h and c (B, H) are the state before the
    chunk. `max_norm` bounds the gradients that flow back into each h and each c (`hornn.scan.scan`). The backward pass
    runs back through time for the gradients of the states alone; that of W_h is then one product over all steps and
    columns.
    Raises ValueError for tensors that are not fp32 on the CPU or do not fit together, NativeError where there are no
    kernels.
    """

    @classmethod
    def apply(
        cls, u: Tensor, h: Tensor, c: Tensor, W_h: Tensor, max_norm: float | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        _require_floats(u=u, h=h, c=c, W_h=W_h)
        B, H = h.shape if h.ndim == 2 else (0, 0)
        expected = {"u": (len(u), B, 4 * H), "h": (B, H), "c": (B, H), "W_h": (4 * H, H)}
        found = {"u": tuple(u.shape), "h": tuple(h.shape), "c": tuple(c.shape), "W_h": tuple(W_h.shape)}
        if found != expected or 0 in expected["u"]:
            raise ValueError(
                "a native LSTM takes u (T, B, 4 H), h and c (B, H) and W_h (4 H, H), all sizes >= 1; got "
                f"{found}"
            )
        result: tuple[Tensor, Tensor, Tensor] = super().apply(u, h, c, W_h, max_norm, torch.is_grad_enabled())
        return result

    @staticmethod
    def forward(
        ctx: Any, u: Tensor, h: Tensor, c: Tensor, W_h: Tensor, max_norm: float | None, training: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        h, c, W_h = h.contiguous(), c.contiguous(), W_h.contiguous()
        keep = training and any(ctx.needs_input_grad)
        y, cells, gates = _operators().lstm(u.contiguous(), h, c, W_h, keep, torch.get_num_threads())
        if keep:
            ctx.save_for_backward(y, h, c, W_h, cells, gates)
            ctx.max_norm = max_norm
        return y, y[-1].clone(), cells[-1].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_y: Tensor, grad_h: Tensor, grad_c: Tensor) -> tuple[Tensor | None, ...]:
        y, h, c, W_h, cells, gates = ctx.saved_tensors
        grads = [grad.contiguous() for grad in (grad_y, grad_h, grad_c)]
        u, h_0, c_0 = _operators().lstm_backward(
            *grads, c, W_h, cells, gates, ctx.max_norm, torch.get_num_threads()
        )
        weight = None
        if ctx.needs_input_grad[3]:
            weight = u.flatten(0, 1).mT @ torch.cat([h.unsqueeze(0), y[:-1]]).flatten(0, 1)
        needed = zip(ctx.needs_input_grad, (u, h_0, c_0, weight), strict=False)
        return *(grad if needs else None for needs, grad in needed), None, None


class NativeLeak(torch.autograd.Function):
    """The scan of leaky integrators (`hornn.cells.scrn.Leak`) over a chunk: s_t = kept s_{t-1} + (1 - kept) b_t.

    `apply(b, s, kept, max_norm=None)` -> s (T, B, C) and the last of them (B, C). b (T, B, C); s (B, C) is the state
    before the chunk; kept (C). `max_norm` bounds the gradient that flows back into each state (`hornn.scan.scan`).
    Raises ValueError for tensors that are not fp32 on the CPU or do not fit together, NativeError where there are no
    kernels.
    """

    @classmethod
    def apply(
        cls, b: Tensor, s: Tensor, kept: Tensor, max_norm: float | None = None
    ) -> tuple[Tensor, Tensor]:
        _require_floats(b=b, s=s, kept=kept)
        expected = {"b": (len(b), *s.shape), "s": (*s.shape[:1], *kept.shape), "kept": kept.shape}
        found = {"b": tuple(b.shape), "s": tuple(s.shape), "kept": tuple(kept.shape)}
        if b.ndim != 3 or not len(b) or found != expected:
            raise ValueError(f"a native leak takes b (T, B, C), s (B, C) and kept (C), T >= 1; got {found}")
        result: tuple[Tensor, Tensor] = super().apply(b, s, kept, max_norm)
        return result

    @staticmethod
    def forward(
        ctx: Any, b: Tensor, s: Tensor, kept: Tensor, max_norm: float | None
    ) -> tuple[Tensor, Tensor]:
        b, s, kept = b.contiguous(), s.contiguous(), kept.contiguous()
        y = _operators().leak(b, s, kept)
        ctx.save_for_backward(b, s, kept, y)
        ctx.max_norm = max_norm
        return y, y[-1].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_y: Tensor, grad_last: Tensor) -> tuple[Tensor | None, ...]:
        b, s, kept, y = ctx.saved_tensors
        whole, grad_s = _operators().leak_backward(
            grad_y.contiguous(), grad_last.contiguous(), kept, ctx.max_norm
        )
        grad_kept = None
        if ctx.needs_input_grad[2]:
            grad_kept = (whole * (torch.cat([s.unsqueeze(0), y[:-1]]) - b)).sum((0, 1))
        return whole * (1 - kept), grad_s, grad_kept, None


def cross_entropy_(
    logits: Tensor, bias: Tensor | None, targets: Tensor, scale: float = 1.0
) -> tuple[Tensor, Tensor | None]:
    """The sum over rows of -log softmax(logits [+ bias])_target in nats, and the scaled gradient of the bias.

    logits (N, V), bf16 or fp32, are overwritten by their gradient, (softmax - one-hot) * scale. bias (V), fp32.
    targets (N), int64; a row whose target is negative adds nothing and becomes 0. Returns a float64 scalar and the bias
    gradient (V), fp32, which is None without a bias. ValueError for tensors that do not fit.
    """
    _require_logits(logits, bias, targets)
    nll, grad_bias = _operators().cross_entropy(logits, bias, targets, True, scale, torch.get_num_threads())
    return nll.sum(), None if bias is None else grad_bias


def nll(logits: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    """-log softmax(logits [+ bias])_target of each row (N), float64, 0 where a target is negative.

    Arguments and errors are those of `cross_entropy_`; the logits stay, and there is no gradient.
    """
    _require_logits(logits, bias, targets)
    result: Tensor = _operators().cross_entropy(logits, bias, targets, False, 1.0, torch.get_num_threads())[0]
    return result


def transpose(x: Tensor) -> Tensor:
    """The contiguous transpose of x (M, N), contiguous bf16 on the CPU, else ValueError."""
    if x.dtype != torch.bfloat16 or x.device.type != "cpu" or x.ndim != 2 or not x.is_contiguous():
        raise ValueError(
            f"only a contiguous bf16 matrix on the CPU is transposed here, got {x.dtype} {tuple(x.shape)} with strides "
            f"{x.stride()} on {x.device}"
        )
    result: Tensor = _operators().transpose(x, torch.get_num_threads())
    return result


def grad_norm(grads: Sequence[Tensor]) -> float:
    """The Euclidean norm of all `grads` (contiguous, fp32 or bf16) together; not finite if one of them is not."""
    _require_floats(**{f"gradient {i}": g for i, g in enumerate(grads) if g.dtype != torch.bfloat16})
    _require_contiguous(grads)
    norm: float = _operators().grad_norm(list(grads), torch.get_num_threads())
    return norm


@torch.no_grad()
def momentum_update_(
    params: Sequence[Tensor],
    momenta: Sequence[Tensor],
    grads: Sequence[Tensor],
    lr: float,
    momentum: float,
    decay: float,
    clip: float,
    scale: float,
    max_norm: float | None,
    copies: Sequence[Tensor] | None = None,
) -> None:
    """The update of `hornn.optim.MomentumSGD` in one pass over the weights.

        g = clamp(scale g, -clip, clip)
        M <- momentum M - lr g
        w <- w (1 - lr decay) + M
        w_i <- w_i min(1, max_norm / |w_i|)     for each row of a tensor of two dimensions or more

    clip is infinite where there is none, max_norm None. Lists of contiguous fp32 tensors of equal shapes, else
    ValueError; a gradient may be bf16, and an empty one stands for zeros. `momenta` may be empty tensors where
    `momentum` is 0. `copies`, bf16 and of the parameters' shapes or empty, receive the new weights.
    """
    copies = [params[0].new_empty(0)] * len(params) if copies is None else copies
    lists = {"parameter": params, "momentum": momenta, "gradient": grads, "copy": copies}
    for kind, tensors in lists.items():
        if len(tensors) != len(params):
            raise ValueError(f"each {kind} must have the shape of its parameter")
        for i, (tensor, param) in enumerate(zip(tensors, params, strict=True)):
            needed = kind == "parameter" or (kind == "momentum" and momentum != 0)
            if needed or (tensor.dtype != torch.bfloat16 and tensor.numel()):
                _require_floats(**{f"{kind} {i}": tensor})
            if tensor.shape != param.shape and (needed or tensor.numel()):
                raise ValueError(f"each {kind} must have the shape of its parameter")
        _require_contiguous(tensors)
    _operators().momentum_update(
        list(params),
        list(momenta),
        list(grads),
        list(copies),
        lr,
        momentum,
        decay,
        clip,
        scale,
        max_norm or 0.0,
        torch.get_num_threads(),
    )
    torch.autograd.graph.increment_version([*params, *momenta])


@torch.no_grad()
def add_noise_(weight: Tensor, std: float, seed: int, rows: Tensor | None = None) -> None:
    """Add independent N(0, std^2) to every number of `weight`, or to those of some `rows`, each named once.

    The noise of a row is a function of `seed` and the row's number. ValueError unless `weight` is contiguous fp32 on
    the CPU and not empty, and `rows` int64 numbers of its rows.
    """
    _require_floats(weight=weight)
    _require_contiguous([weight])
    if not weight.numel() or (rows is not None and weight.ndim != 2):
        raise ValueError(
            f"noise is for a weight that is not empty, and with rows a matrix, got {tuple(weight.shape)}"
        )
    if rows is not None and rows.numel():
        if rows.dtype != torch.int64 or rows.ndim != 1 or rows.is_cuda or not rows.is_contiguous():
            raise ValueError(f"rows must be contiguous int64 on the CPU, got {rows.dtype} on {rows.device}")
        if not 0 <= int(rows.min()) <= int(rows.max()) < len(weight):
            raise ValueError(
                f"rows must be from 0 to {len(weight) - 1}, got {int(rows.min())} to {int(rows.max())}"
            )
    _operators().add_noise(weight, rows, std, seed, torch.get_num_threads())
    torch.autograd.graph.increment_version(weight)


def _require_floats(**tensors: Tensor | None) -> None:
    for name, tensor in tensors.items():
        if tensor is not None and (tensor.dtype != torch.float32 or tensor.device.type != "cpu"):
            raise ValueError(
                f"the native kernels take fp32 on the CPU, got {tensor.dtype} on {tensor.device} for {name}: "
                "set network.backend=deferred for anything else"
            )


def _require_contiguous(tensors: Sequence[Tensor]) -> None:
    for tensor in tensors:
        if not tensor.is_contiguous():
            raise ValueError(f"the native update takes contiguous tensors, got strides {tensor.stride()}")


def _require_logits(logits: Tensor, bias: Tensor | None, targets: Tensor) -> None:
    _require_floats(bias=bias)
    N, V = logits.shape if logits.ndim == 2 else (0, 0)
    if logits.dtype not in (torch.float32, torch.bfloat16) or logits.device.type != "cpu":
        raise ValueError(f"logits must be fp32 or bf16 on the CPU, got {logits.dtype} on {logits.device}")
    if (
        not logits.is_contiguous()
        or not V
        or (bias is not None and (bias.shape != (V,) or not bias.is_contiguous()))
    ):
        raise ValueError(
            "logits must be contiguous (N, V) with V >= 1 and the bias contiguous (V), got logits "
            f"{tuple(logits.shape)}" + ("" if bias is None else f" and bias {tuple(bias.shape)}")
        )
    if targets.dtype != torch.int64 or targets.device.type != "cpu" or targets.shape != (N,):
        raise ValueError(
            f"targets must be {N} int64 ids on the CPU, got {targets.dtype} {tuple(targets.shape)} on {targets.device}"
        )
    if not targets.is_contiguous():
        raise ValueError(f"targets must be contiguous, got strides {targets.stride()}")
    if N and int(targets.max()) >= V:
        raise ValueError(
            f"a target must be below V = {V}, or negative where it is ignored, got {int(targets.max())}"
        )
