"""The same NVML calls as nvml-loop.c through nvidia-ml-py: pynvml_loop.py INTERVAL_MS SECONDS"""
import sys
import time

import pynvml as n

FAST_FIELDS = [186, 82]
SLOW_FIELDS = [83, 3, 4, 5, 6, 74, 75, 94, 142, 143, 144, 145, 230]
# The last one is dear (1 ms): asked with the slow fields only.
GPM_IDS = [2, 3, 5, 10, 11, 12, 13, 20, 21, 60, 61, 1]


def attempt(call, *args):
    try:
        return call(*args)
    except n.NVMLError:
        return None


def gpm(device, samples, tick, is_slow):
    attempt(n.nvmlGpmSampleGet, device, samples[tick & 1])
    if tick == 0:
        return
    get = n.c_nvmlGpmMetricsGet_t()
    get.version = 1
    ids = GPM_IDS if is_slow else GPM_IDS[:-1]
    get.numMetrics = len(ids)
    get.sample1 = samples[(tick + 1) & 1]
    get.sample2 = samples[tick & 1]
    for place, metric in enumerate(ids):
        get.metrics[place].metricId = metric
    attempt(n.nvmlGpmMetricsGet, get)


def main():
    interval, seconds = float(sys.argv[1]) / 1000, float(sys.argv[2])
    n.nvmlInit()
    devices = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
    samples = {i: [attempt(n.nvmlGpmSampleAlloc), attempt(n.nvmlGpmSampleAlloc)] for i in range(len(devices))}
    start = time.monotonic()
    for tick in range(int(seconds / interval)):
        for i, device in enumerate(devices):
            attempt(n.nvmlDeviceGetMemoryInfo, device, n.nvmlMemory_v2)
            attempt(n.nvmlDeviceGetUtilizationRates, device)
            attempt(n.nvmlDeviceGetTemperature, device, 0)
            for clock in range(4):
                attempt(n.nvmlDeviceGetClockInfo, device, clock)
            attempt(n.nvmlDeviceGetCurrentClocksEventReasons, device)
            attempt(n.nvmlDeviceGetPerformanceState, device)
            attempt(n.nvmlDeviceGetEncoderUtilization, device)
            attempt(n.nvmlDeviceGetDecoderUtilization, device)
            attempt(n.nvmlDeviceGetComputeRunningProcesses, device)
            attempt(n.nvmlDeviceGetGraphicsRunningProcesses, device)
            attempt(n.nvmlDeviceGetFieldValues, device, FAST_FIELDS)
            is_slow = tick % max(1, int(5 / interval)) == 0
            if samples[i][0] is not None:
                gpm(device, samples[i], tick, is_slow)
            if is_slow:
                attempt(n.nvmlDeviceGetFieldValues, device, SLOW_FIELDS)
                attempt(n.nvmlDeviceGetCurrPcieLinkGeneration, device)
                attempt(n.nvmlDeviceGetCurrPcieLinkWidth, device)
            if tick % max(1, int(2 / interval)) == 0:
                attempt(n.nvmlDeviceGetProcessUtilization, device, 0)
        time.sleep(max(0.0, start + (tick + 1) * interval - time.monotonic()))


main()
