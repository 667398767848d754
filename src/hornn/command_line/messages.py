"""What a command says of its user's errors: `launch` makes each one line on stderr and an exit code."""

import argparse
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from unittest.mock import patch

from hydra.core.utils import JobReturn
from hydra.errors import HydraException, InstantiationException, OverrideParseException
from hydra.types import RunMode
from omegaconf.errors import (
    GrammarParseError,
    InterpolationResolutionError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)

from hornn.command_line.ending import (
    FAILED,
    INTERRUPTED,
    LAUNCHED,
    TERMINATED,
    describe_stop,
    describe_system_error,
    end,
    lasting_output,
)
from hornn.command_line.hydra_patches import options_parser, patched
from hornn.command_line.strict_loader import StrictLoader
from hornn.places import OWN_TEXT
from hornn.writing import FULL

# Keys whose values are read sign by sign; no list of values. Of a command that hands no words on to further processes.
PROMPT = "prompt"
WRITTEN = {PROMPT, "text"}
# Files whose names are read likewise, where they are no list and stand in no quotes of Hydra's.
FILES = {"midi", "wav", "to"}


def launch(main: Callable[[], None], needed: bool = False, continues: bool = False) -> None:
    """Run a `@hydra.main` function; an expected error becomes one line on stderr and an exit code.

    needed: as in `lasting_output`. continues: the same command goes on after Ctrl-C. Any other exception is a fault of
    the program and keeps its traceback; HYDRA_FULL_ERROR=1 keeps every one.
    """
    full_error = os.environ.get("HYDRA_FULL_ERROR") == "1"
    words = [_quote(word) for word in sys.argv]
    with (
        lasting_output(needed or _only_shows()),
        patched(StrictLoader, _tell_where),
        patch.object(sys, "argv", words),
    ):
        try:
            _check_options()
            main()
        except (KeyboardInterrupt, SystemExit) as stop:
            if isinstance(stop, SystemExit) and stop.code == TERMINATED:
                end(describe_stop("terminated", continues=True), TERMINATED)
            if full_error or not _is_interrupted(stop):
                raise
            end(describe_stop("interrupted", continues), INTERRUPTED)
        except Exception as error:
            message = _explain(error)
            if not full_error and _is_interrupted(error):  # what failed then, failed as it was put away
                said = f"interrupted; {message}" if message else describe_stop("interrupted", continues)
                end(said, INTERRUPTED)
            if full_error or message is None:
                raise
            notes = "; ".join([*_in_a_cell(error), *getattr(error, "__notes__", [])])
            end(f"{message} ({notes})" if notes else message, getattr(error, "exit_code", FAILED))


def _is_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C began it: Lightning answers with sys.exit(1), and OmegaConf can fail while it puts things back."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _quote(word: str) -> str:
    """`key=value` or `key=[value,value]` with quotes where Hydra's grammar needs them and a path does without.

    Quotes belong around a plain `=`, as in the folders of runs, letters beyond ASCII, and all that a person writes.
    """
    key, _, value = word.partition("=")
    listed = value[:1] == "[" and value[-1:] == "]"
    written = key.lstrip("+") in WRITTEN or (key in FILES and not listed and value[:1] not in ("'", '"', ""))
    if written and (value != "null" or key.lstrip("+") == PROMPT):  # any other key names a file, or none
        return f"{key}={_quote_text(value)}"
    values = value[1:-1].split(",") if listed else [value]
    unread = [("=" in each or not each.isascii()) and not set(each) & set("'\"\\()[]{}") for each in values]
    quoted = [f"'{each}'" if alien else each for each, alien in zip(values, unread, strict=True)]
    if listed:
        return f"{key}=[{','.join(quoted)}]"
    return f"{key}={quoted[0]}" if "=" in word and word[0] != "-" else word


def _quote_text(text: str) -> str:
    """The text in quotes that Hydra takes off again, so that each sign of it, a quote included, is read as it stands.

    A backslash before `${` keeps it from being resolved. Backslashes before that, a quote or the end are doubled.
    """
    plain = re.sub(r"(\\*)\$\{", r"\1\1\\${", text)
    return "'" + re.sub(r"(\\*)('|\Z)", lambda found: 2 * found[1] + ("\\'" if found[2] else ""), plain) + "'"


def _only_shows() -> bool:
    """Whether an option asks for a text, such as --help, in the place of what the command does."""
    try:
        asked = options_parser().parse_known_args()[0]
    except argparse.ArgumentError:
        return False
    return bool(asked.help or asked.hydra_help or asked.cfg or asked.info)


def _check_options() -> None:
    """Raise ValueError for an unknown `--option`, for which Hydra's parser prints its whole usage, and for a word that
    Python could not decode.
    """
    for word in sys.argv[1:]:
        if any("\ud800" <= character <= "\udfff" for character in word):
            readable = word.encode(errors="surrogateescape").decode(errors="replace")
            raise ValueError(
                f"this locale cannot read {readable}: set PYTHONUTF8=1 or another LC_ALL, such as C.UTF-8"
            )
    try:
        given, unknown = options_parser().parse_known_args()
    except argparse.ArgumentError as error:
        raise ValueError(f"{error}; --help lists the options") from error
    if unknown:
        rule = "settings are written key=value, options such as -m stand before or after all of them"
        raise ValueError(f"cannot place {unknown[0]!r} on the command line: {rule}; see --help")
    if given.package and not given.cfg:
        raise ValueError("--package shows a part of a config: add --cfg job")
    if not os.environ.get(LAUNCHED):  # a sweep's launcher adds to the words that a table gives a job
        check_once(given.overrides)


def check_once(words: Sequence[str], where: str = "") -> None:
    """Raise ValueError, which begins with `where`, for a key that is set twice: Hydra would take the last value and
    say nothing.

    `+key` and `~key` are other matters: together they take a key's place. `++key` sets what `key` sets.
    """
    given: dict[str, str] = {}
    for word in words:
        key, sign, _ = word.removeprefix("++").partition("=")
        if sign and key in given and key[:1] not in ("", "+", "~"):
            raise ValueError(f"{where}{key} is given twice, by {given[key]} and by {word}: give it once")
        given[key] = word


def _in_a_cell(error: BaseException) -> list[str]:
    """Where a cell that was running raised the error, for whoever writes it; nothing for any other error."""
    cells = sys.modules.get("hornn.cells.base")
    if cells is None:  # importing it takes as long as torch does
        return []
    frames = list(traceback.walk_tb(error.__traceback__))
    running = [
        frame.f_code.co_name
        for frame, _ in frames
        if isinstance(frame.f_locals.get("self"), cells.Cell) and frame.f_code.co_name != "__init__"
    ]
    if not running:
        return []
    frame, line = frames[-1]
    return [f"in {running[-1]}(), {frame.f_code.co_filename}:{line}; HYDRA_FULL_ERROR=1 shows the whole way"]


def _tell_where(job: JobReturn, error: BaseException) -> None:
    """Add to the error of a job which job of several it was, where its results go and what else a full disk leaves."""
    settings = job.hydra_cfg
    if settings is not None and settings.hydra.mode is RunMode.MULTIRUN:
        error.add_note(f"in the job {' '.join(job.overrides or [])}")
    if not isinstance(error, OSError) or job.cfg is None:
        return
    of_run = "run_dir" in job.cfg
    vars(error)["way_out"] = " or write elsewhere with run_dir=FOLDER" if of_run else " or give another path"
    if of_run and error.errno and error.filename is None:
        error.add_note(f"the results of this run go below {job.cfg.run_dir or job.working_dir}")


def _explain(error: BaseException) -> str | None:
    """What to tell the user; None for an error that is not theirs."""
    text, cause = str(error) or repr(error), error.__cause__
    match error:
        case OverrideParseException():
            reason = error.message.partition("\nSee http")[0].rstrip(" ^\n").rpartition("\n")[2]
            if "=~" in str(error.override):
                return f"cannot read {error.override!r}: write $HOME in the place of ~"
            remedy = "a value with other signs than a plain path has stands in two pairs of quotes, \"KEY='VALUE'\""
            return f"cannot read {error.override!r}: {reason}; write key=value; {remedy}"
        case InstantiationException() if cause is not None:
            node = re.search(r"full_key: (\S+)", text)
            message = str(cause) if isinstance(cause, TypeError | ImportError) else _explain(cause)
            return f"{node[1]}: {message}" if node and message else message
        case HydraException() if "Cannot merge" in f"{text} {cause}" and (
            key := re.search(r"merging override (\S+?)=", text)
        ):
            return f"{key[1]} has another kind of value: '~{key[1]}' '+{key[1]}=VALUE' takes its place"
        case HydraException() if unclear := re.search(
            r"Ambiguous value for argument '(.*?)'", f"{text} {cause}"
        ):
            name, _, values = unclear[1].partition("=")
            remedy = f"give one, or the list [{values}]; train.py -m trains with each"
            return f"{name} has several values, {values}: {remedy}"
        case HydraException():
            return f"{error} {cause or ''}"
        case MissingMandatoryValue(full_key=key) if key in OWN_TEXT:
            return f"missing value {key!r}: give {', '.join(f'{each}=FILE' for each in OWN_TEXT)}"
        case MissingMandatoryValue():
            return f"missing value {error.full_key!r}: give {error.full_key}=..."
        case InterpolationResolutionError(full_key=key) if "Recursive" in text:
            return f"{key or error.key} is taken from itself, through other keys: give one of them a value"
        case InterpolationResolutionError() if unset := re.search(
            r"Environment variable '(\w+)' not found", text
        ):
            return f"the environment variable {unset[1]} is not set: set it, or give the value by its key"
        case OmegaConfBaseException(full_key=key) if isinstance(error, ValueError | GrammarParseError):
            return f"{key}: {text.partition('    full_key:')[0]}" if key else text
        case OSError() if error.errno in FULL:
            return f"{describe_system_error(error)}{getattr(error, 'way_out', '')}"
        case OSError():
            return describe_system_error(error) or text
        case ValueError():
            return text
    names = {known.__name__ for known in type(error).__mro__}
    # torch has no type of its own for the memory of the CPU
    if names & {"MemoryError", "OutOfMemoryError"} or "can't allocate memory" in text:
        said = text.splitlines()[0]
        return f"there is not enough memory ({said}): lower the sizes of the model or of a batch"
    return text if names & {"MisconfigurationException", "YAMLError"} else None
