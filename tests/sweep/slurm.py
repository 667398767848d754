"""A Slurm of one node, this machine, whose files lie in one folder: for a test where Slurm's packages are installed."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from sweep.mini import wait_for

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "sinfo", "sdiag")
CONFIG = """ClusterName=one
SlurmctldHost=localhost
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=1,batch_sched_delay=0
ReturnToService=2
SlurmdTimeout=4
KillWait=2
NodeName=localhost CPUs={cpus} RealMemory=4000
PartitionName=main Nodes=localhost Default=YES
"""


def missing() -> str | None:
    """Why there can be no Slurm here; None: there can."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"needs Slurm's packages, slurm-wlm and munge: no {', '.join(absent)}"
    return "needs root, as whom Slurm's daemons run" if os.geteuid() else None


class Slurm:
    """Its daemons. Whoever is to speak with them needs SLURM_CONF={config} in the environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "slurm.conf"
        self.environment = {**os.environ, "SLURM_CONF": str(self.config)}

    def start(self) -> None:
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self.config.write_text(
            CONFIG.format(folder=self.folder, ports=free_ports(2), cpus=len(os.sched_getaffinity(0)))
        )
        files = {
            "socket": "socket",
            "key-file": "key",
            "pid-file": "pid",
            "log-file": "log",
            "seed-file": "seed",
        }
        self.do("munged", "--force", *(f"--{word}={self.folder}/munge.{end}" for word, end in files.items()))
        self.do("slurmctld")
        self.do("slurmd", "-N", "localhost")

    def do(self, *words: str) -> str:
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def state_of(self, job_id: str) -> str:
        return self.do(
            "squeue", "--array", "--states=all", "--noheader", "--format=%T", f"--jobs={job_id}"
        ).strip()

    def lose_the_node(self) -> None:
        """Everything on the node is gone at once, as when the power fails: what looks after the jobs first."""
        jobs = self._processes_of_jobs()
        stewards = {parent for parent in map(parent_of, jobs) if name_of(parent) == "slurmstepd"}
        for pid in (int((self.folder / "slurmd.pid").read_text()), *stewards, *jobs):
            kill(pid)

    def return_the_node(self) -> None:
        """The node is back, and gets jobs once it has heard that it lost them: else this would end their new start."""
        self.do("scontrol", "update", "PartitionName=main", "State=DOWN")
        self.do("slurmd", "-N", "localhost")
        wait_for(lambda: self.do("sinfo", "--noheader", "--format=%T").strip() == "idle", 60)
        wait_for(lambda: re.search(r"^Agent count: +0$", self.do("sdiag"), re.MULTILINE), 60)
        self.do("scontrol", "update", "PartitionName=main", "State=UP")

    def stop(self) -> None:
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self.do("scancel", "--user=root", "--signal=KILL", "--full")
            time.sleep(0.5)
        self.lose_the_node()
        for name in ("slurmctld.pid", "munge.pid"):
            kill(int((self.folder / name).read_text()))

    def _processes_of_jobs(self) -> list[int]:
        mine = f"SLURM_CONF={self.config}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                if mine in words and any(word.startswith(b"SLURM_JOB_ID=") for word in words):
                    found.append(int(path.parent.name))
        return found


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def parent_of(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def name_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
