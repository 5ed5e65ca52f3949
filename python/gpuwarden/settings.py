"""What the environment says: where the agent is, which run this is, where to keep what cannot be sent."""
from __future__ import annotations

import os
from typing import Mapping, NamedTuple, Optional
from urllib.parse import urlsplit

DEFAULT_URL = "http://127.0.0.1:4780"
_YES = {"1", "true", "yes", "on"}
_LOOPBACK = {"localhost", "::1"}


class Settings(NamedTuple):
    url: str
    token: Optional[str]
    run_id: Optional[str]
    run_name: Optional[str]
    correlation_id: Optional[str]
    #: None: nothing is written to disk.
    spool_folder: Optional[str]
    snapshot_folder: str
    disabled: bool
    may_start_agent: bool
    #: Whether the agent may ask which lines allocate memory.
    may_record: bool = True
    #: Whether Weights & Biases and MLflow get figures and findings.
    may_tell_trackers: bool = True
    #: Whether the model is looked at, to say what it needs to compute.
    may_count_model: bool = True
    #: Whether the agent may ask where the threads are.
    may_tell_stacks: bool = True

    @property
    def is_loopback(self) -> bool:
        host = urlsplit(self.url).hostname or ""
        return host in _LOOPBACK or host.startswith("127.")


def settings_for(url: Optional[str]) -> Settings:
    """Of the environment, but for the agent at `url` where one is given."""
    settings = read_settings()
    return settings if url is None else settings._replace(url=url.rstrip("/"))


def read_settings(environ: Optional[Mapping[str, str]] = None) -> Settings:
    env = os.environ if environ is None else environ
    cache = os.path.join(env.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "gpuwarden")
    spool = env.get("GPUWARDEN_SPOOL") or os.path.join(cache, "spool")
    return Settings(
        url=(env.get("GPUWARDEN_URL") or DEFAULT_URL).rstrip("/"),
        token=_token(env),
        run_id=env.get("GPUWARDEN_RUN_ID") or None,
        run_name=env.get("GPUWARDEN_RUN_NAME") or None,
        correlation_id=env.get("GPUWARDEN_CORRELATION_ID") or _trace_id(env.get("TRACEPARENT")),
        spool_folder=None if spool.lower() == "off" else spool,
        snapshot_folder=env.get("GPUWARDEN_SNAPSHOTS") or os.path.join(cache, "snapshots"),
        disabled=_is_yes(env.get("GPUWARDEN_DISABLED")),
        may_start_agent=not _is_yes(env.get("GPUWARDEN_NO_START")),
        may_record=not _is_yes(env.get("GPUWARDEN_NO_RECORDING")),
        may_tell_trackers=not _is_yes(env.get("GPUWARDEN_NO_TRACKERS")),
        may_count_model=not _is_yes(env.get("GPUWARDEN_NO_MODEL")),
        may_tell_stacks=not _is_yes(env.get("GPUWARDEN_NO_STACKS")),
    )


def _is_yes(text: Optional[str]) -> bool:
    return (text or "").strip().lower() in _YES


def _token(env: Mapping[str, str]) -> Optional[str]:
    token = env.get("GPUWARDEN_TOKEN")
    if token:
        return token.strip()
    path = env.get("GPUWARDEN_TOKEN_FILE")
    if not path:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip() or None
    except OSError:
        # The agent will answer 401, which is reported once with what to do.
        return None


def _trace_id(traceparent: Optional[str]) -> Optional[str]:
    parts = (traceparent or "").split("-")
    return parts[1] if len(parts) >= 4 and len(parts[1]) == 32 else None
