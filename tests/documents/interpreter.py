"""Runs blocks of Python in one namespace: a line of JSON for each, answered by its output and a line that ends it."""

import importlib
import json
import sys
import traceback

DONE = "-- block done:"


def main() -> None:
    namespace = {"__name__": "__main__"}
    for line in sys.stdin:
        block, outcome = json.loads(line), "ok"
        importlib.invalidate_caches()  # the page may have written a module just now
        try:
            exec(compile(block["text"], block["where"], "exec"), namespace)
        except BaseException:
            traceback.print_exc(file=sys.stdout)
            outcome = "failed"
        print(f"\n{DONE} {outcome}", flush=True)


if __name__ == "__main__":
    main()
