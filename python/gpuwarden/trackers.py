"""What gpuwarden saw of a run, for Weights & Biases and MLflow: its figures and findings, kept with the run there."""
from __future__ import annotations

import logging
import math
import sys
import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional
from urllib.parse import quote

from .agent_link import AgentLink, Unreachable
from .hyperparameters import flat
from .settings import Settings

log = logging.getLogger("gpuwarden")

#: The most time that it takes at the end of a run; a tracking server may not answer at all.
SECONDS = 2.0
_AGENT_SECONDS = 1.0
#: The last steps are on their way.
_DELIVERY_SECONDS = 0.8
_MOST_FINDINGS = 100
_FIGURES = {
    "steps": "steps",
    "bestLoss": "best_loss",
    "meanStepSeconds": "mean_step_seconds",
    "meanThroughputPerSecond": "mean_throughput_per_second",
    "memoryPeakAllocatedBytes": "memory_peak_allocated_bytes",
    "nonFiniteSteps": "non_finite_steps",
}


class Seen(NamedTuple):
    #: By name, as `gpuwarden/steps`.
    figures: Dict[str, float]
    findings: List[Dict[str, Any]]
    #: The page of the run.
    page: str


def config() -> Dict[str, Any]:
    """The hyperparameters that the program gave to Weights & Biases, where it did."""
    run = _wandb_run()
    return flat(getattr(run, "config", None)) if run is not None else {}


def tell(run_id: str, settings: Settings, is_settled: Callable[[], bool]) -> None:
    """To whichever of them this program uses. Never raises, and takes SECONDS at most."""
    try:
        wandb_run, mlflow_run = _wandb_run(), _mlflow_run()
        if wandb_run is None and mlflow_run is None:
            return
        told = threading.Thread(target=_tell, args=(run_id, settings, is_settled, wandb_run, mlflow_run), name="gpuwarden-trackers", daemon=True)
        told.start()
        told.join(SECONDS)
    except Exception as error:
        log.debug("gpuwarden: trackers got nothing: %s: %s", type(error).__name__, error)


def read(run_id: str, settings: Settings) -> Optional[Seen]:
    """None: no agent says anything of this run."""
    link = AgentLink(settings, timeout=_AGENT_SECONDS)
    try:
        run = link.get("/api/v1/runs/" + quote(run_id, safe=""))
        past = link.get("/api/v1/findings/history?limit=%d&run=%s" % (_MOST_FINDINGS, quote(run_id, safe="")))
    except Unreachable as error:
        log.debug("gpuwarden: trackers got nothing: %s", error)
        return None
    finally:
        link.close()
    if not run.ok or not isinstance(run.body, dict):
        return None
    training = run.body.get("training") or {}
    figures = {"gpuwarden/" + name: training.get(key) for key, name in _FIGURES.items()}
    for share in training.get("phaseShares") or []:
        figures["gpuwarden/phase_share/" + share["phase"].replace(" ", "_")] = share["ratio"]
    findings = [_short(one) for one in (past.body or {}).get("findings", [])] if past.ok else []
    figures["gpuwarden/findings"] = len(findings)
    known = {name: float(value) for name, value in figures.items() if isinstance(value, (int, float)) and math.isfinite(value)}
    return Seen(known, findings, "%s/#/training/%s" % (settings.url, quote(run_id, safe="")))


def _tell(run_id: str, settings: Settings, is_settled: Callable[[], bool], wandb_run: Any, mlflow_run: Optional[str]) -> None:
    deadline = time.monotonic() + _DELIVERY_SECONDS
    while not is_settled() and time.monotonic() < deadline:
        time.sleep(0.02)
    seen = read(run_id, settings)
    if seen is None:
        return
    for name, write, target in (("Weights & Biases", _to_wandb, wandb_run), ("MLflow", _to_mlflow, mlflow_run)):
        if target is None:
            continue
        try:
            write(target, seen)
            log.debug("gpuwarden: %d findings and %d figures went to %s", len(seen.findings), len(seen.figures), name)
        except Exception as error:  # Their server, their limits.
            log.debug("gpuwarden: %s took nothing: %s: %s", name, type(error).__name__, error)


def _to_wandb(run: Any, seen: Seen) -> None:
    words = ["%s %s: %s" % (one["severity"], one["detector"], one["message"]) for one in seen.findings]
    run.summary.update(dict(seen.figures, **{"gpuwarden/findings_text": "\n".join(words) or "none", "gpuwarden/page": seen.page}))


def _to_mlflow(run_id: str, seen: Seen) -> None:
    mlflow: Any = sys.modules["mlflow"]
    client = mlflow.MlflowClient()
    now_ms = int(time.time() * 1000)
    metrics = [mlflow.entities.Metric(name, value, now_ms, 0) for name, value in seen.figures.items()]
    worst = next((one["message"] for level in ("critical", "warning") for one in seen.findings if one["severity"] == level), "none")
    tags = [mlflow.entities.RunTag("gpuwarden.page", seen.page), mlflow.entities.RunTag("gpuwarden.worst_finding", worst[:5000])]
    client.log_batch(run_id, metrics=metrics, tags=tags)
    client.log_dict(run_id, {"page": seen.page, "findings": seen.findings}, "gpuwarden/findings.json")


def _short(finding: Dict[str, Any]) -> Dict[str, Any]:
    return {name: finding.get(name) for name in ("detector", "severity", "message", "state", "since", "at", "advice")}


def _wandb_run() -> Any:
    return getattr(sys.modules.get("wandb"), "run", None)


def _mlflow_run() -> Optional[str]:
    """Also one that was ended a moment ago, as the Trainer's own callback does."""
    mlflow: Any = sys.modules.get("mlflow")
    if mlflow is None or not hasattr(mlflow, "active_run"):
        return None
    active = mlflow.active_run()
    if active is not None:
        return str(active.info.run_id)
    last = getattr(sys.modules.get("mlflow.tracking.fluent"), "_last_active_run_id", None)
    found = last.get() if hasattr(last, "get") else last
    return str(found) if found else None
