"""What sweeps found, on Weights & Biases: tables, curves and scores by order, alpha and time."""

from pathlib import Path

from hornn.command_line import ending
from hornn.command_line.options import Parser


def main() -> str:
    parser = Parser(
        description=f"{__doc__} A table that cannot be read is left out, with a warning.",
    )
    parser.add_argument(
        "--project",
        required=True,
        help="the project that the runs were logged to; hornn where nothing else was set",
    )
    parser.add_argument(
        "--entity", default="", metavar="TEAM", help="whose project it is, unless it is yours"
    )
    one = parser.add_mutually_exclusive_group()
    one.add_argument(
        "--offline",
        action="store_true",
        help="log the tables alone, without a network: `wandb sync` uploads them later",
    )
    one.add_argument("--spec", type=Path, metavar="FILE", help="write what would be published, send nothing")
    parser.add_folders()
    given = parser.parse_args()
    if not given.project:
        parser.error("--project must name a project")
    if given.spec and not given.spec.name:
        parser.error(f"--spec must name a file, got {given.spec}")
    from hornn.dashboard import Settings, show

    return show(Settings(**vars(given)))


def run() -> None:
    ending.run(main)
