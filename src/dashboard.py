import sys

from hornn.command_line.ending import run


def main() -> str | None:
    if {"-h", "--help"} & set(sys.argv):
        return __doc__
    from hornn.dashboard import read_settings, show

    return show(read_settings(sys.argv[1:]))


if __name__ == "__main__":
    run(main)
