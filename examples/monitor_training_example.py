"""What the SDK does, on any machine: no torch needed, nor a GPU (the agent simulates GPUs where there are none).

    python examples/monitor_training_example.py --mode monitor     # figures of a GPU
    python examples/monitor_training_example.py --mode dashboard   # the terminal UI
    python examples/monitor_training_example.py --mode train       # a simulated training, watched
"""
from __future__ import annotations

import argparse
import math
import random
import time

from gpuwarden import GPUMonitor, MemoryDebugger, TrainingMonitorCallback
from gpuwarden.program import replace_with_program


def watch_gpu(arguments: argparse.Namespace) -> None:
    def show(sample) -> None:
        figures = [
            ("%.0f %%", sample.utilization_percent),
            ("%.0f MB", sample.memory_used_mb),
            ("%.0f C", sample.temperature_celsius),
            ("%.0f W", sample.power_draw_watts),
        ]
        words = ", ".join(pattern % value if value is not None else "N/A" for pattern, value in figures)
        print("GPU %d%s: %s" % (sample.gpu_index, " (SIMULATED)" if sample.simulated else "", words), flush=True)

    monitor = GPUMonitor(gpu_index=arguments.gpu, sample_interval=arguments.interval, on_sample=show)
    with monitor:
        if monitor.wait_for_sample(15) is None:
            raise SystemExit("no figures: %s" % monitor.reason)
        time.sleep(arguments.duration)
    print(monitor.get_summary())


def train(arguments: argparse.Namespace) -> None:
    monitor = GPUMonitor(gpu_index=arguments.gpu, sample_interval=arguments.interval, run_name="simulated-training")
    callback = TrainingMonitorCallback(monitor)
    debugger = MemoryDebugger()
    debugger.start_monitoring()
    callback.on_train_begin(total_steps=arguments.steps)
    steps_per_epoch = max(1, arguments.steps // 4)
    for step in range(arguments.steps):
        callback.on_step_begin()
        time.sleep(random.uniform(0.5, 1.5) * arguments.step_seconds)
        progress = step / arguments.steps
        loss = 4.0 * math.exp(-4 * progress) + 0.3 + random.gauss(0, 0.03)
        callback.on_step_end(
            step=step,
            epoch=step / steps_per_epoch,
            loss=loss,
            lr=1e-3 * 0.5 * (1 + math.cos(math.pi * progress)),
            grad_norm=abs(random.gauss(1.0, 0.2)),
            throughput=32 / arguments.step_seconds,
            accuracy=min(0.99, progress + 0.1),
        )
        if step % steps_per_epoch == 0:
            print("step %d: loss %.3f" % (step, loss), flush=True)
    callback.on_train_end()
    debugger.stop_monitoring()
    print("steps:", callback.run.statistics() if callback.run else None)
    print("memory:", debugger.get_status_report()["summary"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=("monitor", "dashboard", "train"), default="train")
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--interval", type=float, default=1.0)
    parser.add_argument("--duration", type=float, default=10.0, help="seconds, for --mode monitor")
    parser.add_argument("--steps", type=int, default=200, help="for --mode train")
    parser.add_argument("--step-seconds", type=float, default=0.05, help="for --mode train")
    arguments = parser.parse_args()
    if arguments.mode == "monitor":
        watch_gpu(arguments)
    elif arguments.mode == "train":
        train(arguments)
    else:
        import sys

        sys.argv[1:] = ["--gpu", str(arguments.gpu), "--interval", str(arguments.interval)]
        replace_with_program(["top"])


if __name__ == "__main__":
    main()
