"""A training run: `with gpuwarden.run("name") as run: run.log(step=…, loss=…)`."""
from __future__ import annotations

import itertools
import logging
import os
import re
import socket
import threading
import time
import uuid
from collections import deque
from types import TracebackType
from typing import Any, Deque, Dict, List, Mapping, Optional, Type, Union

from . import allocator, automatic, hyperparameters, lifecycle, loader_facts, model_watch, oom_moment, oom_report, provenance, trackers
from .growth import Growth
from .model_report import ModelReport
from .ranks import read_ranks, shared_run_id
from .recording import Recorder, Recording
from .sender import QUEUE_STEPS, Sender
from .settings import Settings, read_settings
from .standstill import Standstill
from .steps import Step, scalar, scalars, whole_steps

log = logging.getLogger("gpuwarden")

#: The allocator is asked at most this often: asking costs more than all the rest of a step.
ALLOCATOR_SECONDS = 0.25
OUTCOMES = ("success", "oom", "nan", "killed", "failed")
_count = itertools.count(1)


class Run:
    """Nothing logged here can stop, fail or noticeably slow the training: errors are counted and logged."""

    def __init__(
        self,
        name: Optional[str] = None,
        *,
        run_id: Optional[str] = None,
        framework: Optional[str] = None,
        correlation_id: Optional[str] = None,
        gpus: Optional[List[Union[int, str]]] = None,
        gpu_hint: Optional[int] = None,
        total_steps: Optional[int] = None,
        config: Any = None,
        settings: Optional[Settings] = None,
        end_is_told_by: Optional[str] = None,
    ) -> None:
        settings = settings or read_settings()
        self.name = (name or settings.run_name or provenance.script_name()).strip()[:200] or "run"
        nth = next(_count)
        ranks = read_ranks()
        self.rank, self.local_rank, self.world_size = ranks
        given = run_id or settings.run_id
        self.id = _safe_id(given) if given else shared_run_id(self.name, nth) or uuid.uuid4().hex
        self.correlation_id = (correlation_id or settings.correlation_id or "")[:200] or None
        self.outcome: Optional[str] = None
        # Under `gpuwarden run` the exit code says it, and `gpuwarden run` passes it on.
        self._end_is_told_by = None if settings.run_id else end_is_told_by
        self._planned = whole_steps(total_steps)
        self._off = settings.disabled
        self._settings = settings
        # A given id may be used again, by a resumed training or a second process: numbers must never restart there.
        first_seq = int(time.time() * 1000) * 1000 + 1 if given else 1
        self._seq = itertools.count(first_seq).__next__
        self._queue: Deque[Step] = deque(maxlen=QUEUE_STEPS)
        self._last_step = -1
        self._last_at = 0.0
        self._allocator_at = 0.0
        self._growth = Growth()
        self._gpu_known = gpus is not None
        self._sender: Optional[Sender] = None
        self._recorder = Recorder(self._send_recording, self.rank, settings.may_record)
        self._model = ModelReport(self._tell_model, self._tell_groups, self.rank, self.world_size)
        self._model_waits = settings.may_count_model
        self._groups: Dict[str, int] = {}
        self._finish_lock = threading.Lock()
        self.hyperparameters = hyperparameters.flat(config)
        self.faults = 0
        if self._off:
            self._recorder.close()
            return
        described: Dict[str, Any] = {
            "id": self.id,
            "name": self.name,
            "host": socket.gethostname(),
            "user": provenance.user(),
            "pid": os.getpid(),
            "command": provenance.command(),
            "git_commit": provenance.git_commit(),
            "framework": framework,
            "rank": self.rank,
            "hyperparameters": self.hyperparameters or None,
            "data_loader": loader_facts.known(),
            "world_size": self.world_size,
            "total_steps": self._planned,
            "gpus": self._gpus(gpus, gpu_hint),
            "started_at": int(time.time() * 1000),
            "correlation_id": self.correlation_id,
            "can_record": settings.may_record,
            "can_tell_stacks": settings.may_tell_stacks,
        }
        fixed = {"rank": self.rank, "local_rank": self.local_rank, "world_size": self.world_size, "pid": os.getpid()}
        body = {key: value for key, value in described.items() if value is not None}
        spool_name = "%s.rank%d.%d" % (self.id, self.rank, os.getpid())
        self._sender = Sender(settings, body, fixed, self._queue, first_seq, spool_name)
        self._sender.on_requests(self._recorder.ask, Standstill(self._sender.result, self.rank, settings.may_tell_stacks))
        try:
            self._sender.start()
        except RuntimeError as error:
            # No thread can be started: the training may still do without.
            self._off = True
            self._sender = None
            self._fault("nothing is sent: no thread could be started", error)
            return
        log.debug("gpuwarden: run %s (%s) of rank %d goes to %s", self.name, self.id, self.rank, settings.url)
        lifecycle.opened(self)

    @property
    def is_active(self) -> bool:
        return not self._off

    def log(
        self,
        step: Optional[int] = None,
        epoch: Optional[float] = None,
        loss: Any = None,
        lr: Any = None,
        grad_norm: Any = None,
        throughput: Any = None,
        step_seconds: Optional[float] = None,
        phases: Optional[Mapping[str, float]] = None,
        **custom: Any,
    ) -> None:
        """One step. Numbers may be Python's, numpy's or tensors; one that is on the GPU is fetched without waiting for it."""
        if self._off:
            return
        try:
            now = time.time()
            seen = automatic.measured() if phases is None else None
            if seen is not None:
                phases = seen.phases
                step_seconds = seen.seconds if step_seconds is None else step_seconds
                loss = seen.loss if loss is None else loss
                lr = seen.lr if lr is None else lr
                grad_norm = seen.grad_norm if grad_norm is None else grad_norm
                throughput = seen.samples_per_second if throughput is None else throughput
                if seen.tokens_per_second is not None:
                    custom.setdefault("tokens_per_second", seen.tokens_per_second)
            if self._model_waits:
                self._model_waits = self._model.on_step(automatic.meter_in_use())
            if self._groups:
                custom.update(self._groups)
                self._groups = {}
            if step is None:
                step = self._last_step + 1
            elif type(step) is not int:
                step = int(step)
            if step_seconds is None and self._last_at and step > self._last_step:
                step_seconds = (now - self._last_at) / (step - self._last_step)
            self._last_step = step
            self._last_at = now
            alloc = None
            if now - self._allocator_at >= ALLOCATOR_SECONDS or now < self._allocator_at:
                self._allocator_at = now
                self._tell_loader()
                alloc = allocator.figures()
                if alloc:
                    self._on_allocator(now, step, alloc)
            self._queue.append(
                Step(
                    self._seq(),
                    step,
                    int(now * 1000),
                    epoch if type(epoch) is float else scalar(epoch),
                    loss if type(loss) is float else scalar(loss),
                    lr if type(lr) is float else scalar(lr),
                    grad_norm if type(grad_norm) is float else scalar(grad_norm),
                    throughput if type(throughput) is float else scalar(throughput),
                    step_seconds,
                    scalars(phases) if phases else None,
                    alloc,
                    scalars(custom) if custom else None,
                    model_watch.take(),
                )
            )
            if len(self._queue) > QUEUE_STEPS // 2 and self._sender is not None:
                self._sender.wake()
            if self._recorder.is_wanted:
                self._recorder.on_step(step, step_seconds)
            elif step_seconds is not None:
                self._recorder.recent.append(step_seconds)
        except Exception as error:
            self._fault("a step was not logged", error)

    def snapshot(self, steps: int = 20, host: bool = False) -> Recording:
        """Records for the next `steps` logged steps which lines of the program keep memory, of the GPU or (`host`) of Python.

        The answer is there when `is_over` is true, and goes to the agent. Where the program records its memory history itself, that is
        written to a file instead, for `gpuwarden snapshot`.
        """
        return self._recorder.start(Recording("host" if host else "gpu", steps))

    def follow_model(self, model: Any, precision: Any = None, batch: Any = None) -> None:
        """The model that is trained, its precision (`bf16-mixed`) and the shapes of a batch, where a trainer knows them."""
        self._model.follow(model, precision, batch)

    def plan(self, total_steps: Optional[int]) -> None:
        """Sets how many steps there will be, once it is known."""
        total = whole_steps(total_steps)
        if total is not None and self._sender is not None and not self._off:
            self._planned = total
            self._sender.describe({"total_steps": total})

    def configure(self, config: Any) -> None:
        """Hyperparameters to keep with the run, besides those it began with: a map, a dataclass or a namespace."""
        added = hyperparameters.flat(config)
        if not added or self._sender is None or self._off or added.items() <= self.hyperparameters.items():
            return
        self.hyperparameters.update(added)
        self._sender.describe({"hyperparameters": dict(self.hyperparameters)})

    def fail(self, error: BaseException) -> None:
        """Ends the run with `error` as its outcome; a CUDA out-of-memory error leaves a report of where the memory was."""
        if self._off:
            return
        try:
            is_oom = oom_report.is_out_of_memory(error)
            if is_oom and self._sender is not None:
                report = oom_report.build(error, self.id, self.rank, read_settings().snapshot_folder, self._growth)
                self._sender.report(report)
                if oom_report.add_ways_out(report):
                    self._sender.report(report)
                log.error("%s", oom_report.in_words(report))
            if isinstance(error, SystemExit):
                outcome = "success" if error.code in (None, 0) else "failed"
            elif isinstance(error, KeyboardInterrupt):
                outcome = "killed"
            else:
                outcome = "oom" if is_oom else "failed"
            self.finish(outcome, None if outcome == "success" else _in_words(error)[:2000])
        except Exception as fault:
            self._fault("the end of the run was not reported", fault)

    def finish(self, outcome: str = "success", message: Optional[str] = None, timeout: float = lifecycle.EXIT_SECONDS) -> None:
        """Ends the run; takes `timeout` seconds at most. What could not be sent by then is kept in the spool. A second call does nothing."""
        if self._off or not self._finish_lock.acquire(blocking=False):
            if self._sender is not None:
                # Called again while it ends: the sender may still need its moment.
                self._sender.join(timeout)
            return
        try:
            self._recorder.close()
            self.tell_trackers()
            self._model.stop()
            self._off = True
            self.outcome = outcome if outcome in OUTCOMES else "failed"
            log.debug("gpuwarden: run %s ends: %s", self.id, self.outcome)
            end: Dict[str, Any] = {"outcome": self.outcome, "rank": self.rank, "ended_at": int(time.time() * 1000)}
            if message:
                end["message"] = message
            if self._sender is not None:
                self._sender.finish(end, max(0.1, timeout * 0.9))
            self._model.join(timeout * 0.1)
        except Exception as error:
            self._fault("the end of the run was not reported", error)
        finally:
            lifecycle.closed(self)

    def tell_trackers(self) -> None:
        """Figures and findings go to Weights & Biases and MLflow where the program uses them, and its hyperparameters come from there."""
        sender = self._sender
        if sender is not None and not self._off and self.rank == 0 and self._settings.may_tell_trackers:
            self.configure(trackers.config())
            sender.wake()
            trackers.tell(self.id, self._settings, lambda: sender.is_settled)

    def finish_with_program(self, timeout: float) -> None:
        """The program ends and nobody ended the run. Where a callback should have, the training did not finish."""
        told_by = self._end_is_told_by
        if told_by is None or (self._planned is not None and self._last_step + 1 >= self._planned):
            self.finish("success", timeout=timeout)
        else:
            self.finish("failed", "the program ended before %s" % told_by, timeout)

    def hand_over(self) -> None:
        """Another run of this program has the same id and goes on with it: what is left is sent, without an end."""
        self._recorder.close()
        self._off = True
        lifecycle.closed(self)
        if self._sender is not None:
            self._sender.leave()

    def go_silent(self) -> None:
        """In the child of a fork: this run belongs to the parent."""
        self._off = True
        self._sender = None
        self._queue = deque(maxlen=1)

    def statistics(self) -> Dict[str, int]:
        """How many steps were delivered, kept in the spool, refused by the agent, dropped; and how often the SDK itself failed."""
        sender = self._sender
        if sender is None:
            return {"delivered": 0, "spooled": 0, "rejected": 0, "dropped": 0, "faults": self.faults}
        return {
            "delivered": sender.delivered,
            "spooled": sender.spooled,
            "rejected": sender.rejected,
            "dropped": sender.dropped,
            "faults": self.faults,
        }

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        if error is None:
            self.finish("success")
        else:
            self.fail(error)

    def _gpus(self, given: Optional[List[Union[int, str]]], hint: Optional[int]) -> Optional[List[str]]:
        """`hint` is good enough until CUDA is in use; other ranks are on other GPUs."""
        if given is not None:
            return [str(gpu) for gpu in given]
        known = allocator.device_ids()
        return known if known or hint is None or self.world_size > 1 else [str(hint)]

    def _on_allocator(self, now: float, step: int, figures: Mapping[str, int]) -> None:
        """PyTorch uses CUDA, and has reported what it holds at the end of this step."""
        oom_moment.attach()
        self._growth.add(now, step, figures.get("allocated", 0), figures.get("peak_allocated"))
        if self._gpu_known:
            return
        self._gpu_known = True
        gpus = allocator.device_ids()
        if gpus and self._sender is not None:
            self._sender.describe({"gpus": gpus})

    def _tell_loader(self) -> None:
        facts = loader_facts.known()
        if facts is not None and self._sender is not None and self._sender.run.get("data_loader") is None:
            self._sender.describe({"data_loader": facts})

    def _tell_model(self, figures: Dict[str, Any]) -> None:
        if self._sender is not None:
            self._sender.describe({"model": figures})

    def _tell_groups(self, groups: Dict[str, int]) -> None:
        self._groups = groups

    def _send_recording(self, result: Dict[str, Any]) -> None:
        if self._sender is not None:
            self._sender.result("recordings/%s" % result["id"], result)

    def _fault(self, what: str, error: BaseException) -> None:
        self.faults += 1
        if self.faults == 1:
            log.warning("gpuwarden: %s: %s: %s", what, type(error).__name__, error)


def _in_words(error: BaseException) -> str:
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return "exit code %d" % error.code
    text = str(error)
    return "%s: %s" % (type(error).__name__, text) if text else type(error).__name__


def _safe_id(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._:-]", "-", text).lstrip("._:-")[:128] or uuid.uuid4().hex
