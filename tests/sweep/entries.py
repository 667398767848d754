"""A job on record, as a launcher would write it."""

from hornn.sweep.record import Entry


def entry(row: str, seed: int = 1, config: str = "aaaaaaaaaa", status: str = "queued") -> Entry:
    run_dir = f"outputs/{row}/{config}/seed={seed}"
    return Entry(row, seed, run_dir, [], config, status, "no luck" if status == "failed" else None)
