"""Tables and figures of all sweeps beside the published numbers."""

from functools import partial
from pathlib import Path

from hornn.command_line import ending
from hornn.command_line.options import RESULTS, Parser

OUT = RESULTS / "report"
PORT = 8321


def main() -> str | None:
    parser = Parser(description=__doc__)
    parser.add_folders()
    parser.add_argument("--out", type=Path, help=f"folder written; default {OUT}")
    one = parser.add_mutually_exclusive_group()
    for option, does in (
        (
            "--serve",
            "show the report on a local server that follows the results while sweeps run, until Ctrl-C",
        ),
        ("--keep", "copy results of finished runs to RESULTS/tables, to be committed, write nothing else"),
        (
            "--write",
            "from committed results write RESULTS/tables/**/README.md and the generated blocks in "
            "*.md and docs/, nothing else",
        ),
    ):
        one.add_argument(option, action="store_true", help=does)
    parser.add_argument("--port", type=int, help=f"of the server, 0 takes a free one; default {PORT}")
    given = parser.parse_args()
    if given.out is not None and (given.keep or given.write):
        parser.error(
            f"--out={given.out} is where the report goes, and --keep and --write write none: leave it out"
        )
    if given.port is not None and not given.serve:
        parser.error(f"--port={given.port} is of the server: give --serve, or leave it out")
    if given.results != RESULTS and not given.results.is_dir():
        parser.error(f"--results={given.results} is no folder: give one that holds tables, sweeps or runs")
    out = given.out or OUT
    from hornn.reporting.commands import keep_for_commit, serve_report, write_pages, write_report

    if given.keep:
        return keep_for_commit(given.results, given.sweeps, given.config_dir)
    if given.write:
        return write_pages(given.results, given.sweeps, Path(), given.config_dir)
    if given.serve:
        try:
            say = partial(print, flush=True)
            port = PORT if given.port is None else given.port
            serve_report(given.results, given.sweeps, out, port, say, given.config_dir)
        except KeyboardInterrupt:
            return None  # as a server is meant to end
    return write_report(given.results, given.sweeps, out, given.config_dir).said


def run() -> None:
    ending.run(main)
