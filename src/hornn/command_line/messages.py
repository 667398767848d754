"""What a command says of its user's errors: `launch` makes each one line on stderr and an exit code."""

import argparse
import errno
import os
import re
import signal
import sys
from collections.abc import Callable
from typing import NoReturn
from unittest.mock import patch

from hydra.core.utils import JobReturn
from hydra.errors import HydraException, InstantiationException, OverrideParseException
from hydra.types import RunMode
from omegaconf.errors import GrammarParseError, MissingMandatoryValue, OmegaConfBaseException

from hornn.command_line.hydra_patches import options_parser, patched
from hornn.command_line.strict_loader import StrictLoader

TERMINATED = 128 + signal.SIGTERM  # the exit code after SIGTERM
REMEDIES = {
    errno.ENOENT: "check the path",
    errno.EACCES: "check its permissions or choose another folder",
    errno.ENOSPC: "free some space on that disk or write elsewhere with run_dir=FOLDER",
}


def launch(main: Callable[[], None]) -> None:
    """Run a `@hydra.main` function; an expected error becomes one line on stderr and exit code 2.

    Ctrl-C gives 130, SIGTERM 143.

    Any other exception is a fault of the program and keeps its traceback; HYDRA_FULL_ERROR=1 keeps every one.
    """
    full_error = os.environ.get("HYDRA_FULL_ERROR") == "1"
    words = [_quote(word) for word in sys.argv]
    with patched(StrictLoader, _tell_where), patch.object(sys, "argv", words):
        try:
            _check_options()
            main()
        except (KeyboardInterrupt, SystemExit) as stop:
            if isinstance(stop, SystemExit) and stop.code == TERMINATED:
                _exit("terminated; the same command continues", TERMINATED)
            # Lightning answers Ctrl-C during training with sys.exit(1).
            causes = (type(stop), type(stop.__context__))
            if full_error or KeyboardInterrupt not in causes:
                raise
            _exit("interrupted", 130)
        except Exception as error:
            message = _explain(error)
            if full_error or message is None:
                raise
            notes = "; ".join(getattr(error, "__notes__", []))
            _exit(f"{message} ({notes})" if notes else message, getattr(error, "exit_code", 2))


def _quote(word: str) -> str:
    """`key=value` or `key=[value,value]` with quotes around values with a plain `=`, as in the folders of runs."""
    key, _, value = word.partition("=")
    listed = value[:1] == "[" and value[-1:] == "]"
    values = value[1:-1].split(",") if listed else [value]
    quoted = [f"'{v}'" if "=" in v and not set(v) & set("'\"\\()[]{}") else v for v in values]
    if listed:
        return f"{key}=[{','.join(quoted)}]"
    return f"{key}={quoted[0]}" if "=" in word else word


def _exit(message: str, code: int) -> NoReturn:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


def _check_options() -> None:
    """Raise ValueError for an unknown `--option`, for which Hydra's parser prints its whole usage."""
    try:
        unknown = options_parser().parse_known_args()[1]
    except argparse.ArgumentError as error:
        raise ValueError(f"{error}; --help lists the options") from error
    if unknown:
        rule = "settings are written key=value, options such as -m stand before or after all of them"
        raise ValueError(f"cannot place {unknown[0]!r} on the command line: {rule}; see --help")


def _tell_where(job: JobReturn, error: BaseException) -> None:
    """Add notes to the error of a job: which job of several it was, where its results go."""
    settings = job.hydra_cfg
    if settings is not None and settings.hydra.mode is RunMode.MULTIRUN:
        error.add_note(f"in the job {' '.join(job.overrides or [])}")
    if isinstance(error, OSError) and error.errno and error.filename is None and job.cfg is not None:
        error.add_note(f"the results of this run go below {job.cfg.get('run_dir') or job.working_dir}")


def _explain(error: BaseException) -> str | None:
    """What to tell the user; None for an error that is not theirs."""
    text, cause = str(error) or repr(error), error.__cause__
    match error:
        case OverrideParseException():
            reason = error.message.partition("\nSee http")[0].rstrip(" ^\n").rpartition("\n")[2]
            return f"cannot read {error.override!r}: {reason}; write key=value, and quote a value with blanks"
        case InstantiationException() if cause is not None:
            node = re.search(r"full_key: (\S+)", text)
            message = str(cause) if isinstance(cause, TypeError | ImportError) else _explain(cause)
            return f"{node[1]}: {message}" if node and message else message
        case HydraException():
            return f"{error} {cause or ''}"
        case MissingMandatoryValue():
            return f"missing value {error.full_key!r}: give {error.full_key}=..."
        case OmegaConfBaseException(full_key=key) if isinstance(error, ValueError | GrammarParseError):
            return f"{key}: {text.partition('    full_key:')[0]}" if key else text
        case OSError(errno=int(number), strerror=str(reason), filename=path):
            place = f"{path}: " if path is not None else ""
            return f"{place}{reason}; {REMEDIES[number]}" if number in REMEDIES else f"{place}{reason}"
        case ValueError() | OSError():
            return text
    names = {known.__name__ for known in type(error).__mro__}
    if (
        names & {"MemoryError", "OutOfMemoryError"} or "can't allocate memory" in text
    ):  # torch has no type for it
        return (
            f"there is not enough memory ({text.splitlines()[0]}): lower the sizes of the model or of a batch"
        )
    return text if names & {"MisconfigurationException", "YAMLError"} else None
