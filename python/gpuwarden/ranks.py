"""Which process of a distributed run this is, from the variables that launchers set."""
from __future__ import annotations

import hashlib
import os
import re
import sys
from typing import Mapping, NamedTuple, Optional, Tuple

_LAUNCHERS: Tuple[Tuple[str, str, str], ...] = (
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
)


class Ranks(NamedTuple):
    rank: int
    local_rank: int
    world_size: int


def read_ranks(environ: Optional[Mapping[str, str]] = None) -> Ranks:
    env = os.environ if environ is None else environ
    for rank_name, local_name, size_name in _LAUNCHERS:
        rank = _count(env.get(rank_name))
        if rank is not None:
            size = _count(env.get(size_name)) or 1
            return Ranks(rank, _count(env.get(local_name)) or 0, max(size, rank + 1))
    return Ranks(0, 0, 1) if environ is not None else _process_group()


def _process_group() -> Ranks:
    """Programs that start their ranks themselves name them only to PyTorch."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            rank = int(distributed.get_rank())
            return Ranks(rank, rank, int(distributed.get_world_size()))
    except (AttributeError, RuntimeError, ValueError):
        pass  # A process group that is going away, or something else of that name.
    return Ranks(0, 0, 1)


def shared_run_id(name: str, nth: int, environ: Optional[Mapping[str, str]] = None) -> Optional[str]:
    """An id that every rank of this run computes on its own; None for a single process.

    `nth` counts the runs of this process, so that the second run of a script is another one on every rank.
    """
    env = os.environ if environ is None else environ
    base = _launch(env)
    if base is None:
        return None
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-")[:40] or "run"
    digest = hashlib.sha256(base.encode("utf-8", "replace")).hexdigest()[:16]
    return "%s-%s-%d" % (slug, digest, nth)


def _launch(env: Mapping[str, str]) -> Optional[str]:
    elastic = env.get("TORCHELASTIC_RUN_ID")
    restart = env.get("TORCHELASTIC_RESTART_COUNT", "0")
    if elastic and elastic != "none":
        return "elastic %s %s" % (elastic, restart)
    if env.get("SLURM_JOB_ID") and env.get("SLURM_STEP_ID"):
        return "slurm %s %s %s" % (env["SLURM_JOB_ID"], env["SLURM_STEP_ID"], env.get("SLURM_RESTART_COUNT", "0"))
    if env.get("RANK") is None or env.get("MASTER_ADDR") is None:
        return None
    rendezvous = "%s:%s %s" % (env["MASTER_ADDR"], env.get("MASTER_PORT", ""), restart)
    if env.get("LOCAL_WORLD_SIZE") == env.get("WORLD_SIZE"):
        # One host: the launcher is every rank's parent, and tells this launch from the next one on the same port.
        return "%s %d" % (rendezvous, os.getppid())
    return rendezvous


def _count(text: Optional[str]) -> Optional[int]:
    try:
        value = int(text or "")
    except ValueError:
        return None
    return value if value >= 0 else None
