"""A job on record, as a launcher would write it."""

from hornn.sweep.record import Entry


def entry(row: str, seed: int = 1, config: str = "aaaaaaaaaa", status: str = "queued") -> Entry:
    run_dir = f"outputs/{row}/{config}/seed={seed}"
    return {
        "row": row,
        "seed": seed,
        "run_dir": run_dir,
        "overrides": [],
        "name": config,
        "status": status,
        "error": "no luck" if status == "failed" else None,
    }
