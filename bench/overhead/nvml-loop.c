/*
 * The cheapest possible reader: the NVML calls that gpuwarden makes for every GPU, in a bare loop, nothing done with the answers.
 * cc -O2 -o nvml-loop nvml-loop.c -ldl;  nvml-loop INTERVAL_MS SECONDS [LIBRARY]
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void *device_t;
typedef struct { uint32_t field, scope; int64_t timestamp, latency; uint32_t type, ret; uint64_t value; } field_t;
typedef struct { uint32_t id, ret; double value; void *names[3]; } metric_t;
typedef struct { uint32_t version, count; void *first, *second; metric_t metrics[333]; } metrics_t;

static void *library;
static int none(void) { return 3; }
static void *find(const char *name) {
  void *symbol = dlsym(library, name);
  return symbol ? symbol : (void *)none;
}
#define CALL(name, ...) ((int (*)())find_once(&cache_##name, #name))(__VA_ARGS__)
static void *find_once(void **cache, const char *name) {
  if (!*cache) *cache = find(name);
  return *cache;
}
#define SYMBOL(name) static void *cache_##name
SYMBOL(nvmlDeviceGetMemoryInfo_v2); SYMBOL(nvmlDeviceGetUtilizationRates); SYMBOL(nvmlDeviceGetTemperature);
SYMBOL(nvmlDeviceGetClockInfo); SYMBOL(nvmlDeviceGetCurrentClocksEventReasons); SYMBOL(nvmlDeviceGetPerformanceState);
SYMBOL(nvmlDeviceGetEncoderUtilization); SYMBOL(nvmlDeviceGetDecoderUtilization);
SYMBOL(nvmlDeviceGetComputeRunningProcesses_v3); SYMBOL(nvmlDeviceGetGraphicsRunningProcesses_v3);
SYMBOL(nvmlDeviceGetFieldValues); SYMBOL(nvmlGpmSampleGet); SYMBOL(nvmlGpmMetricsGet); SYMBOL(nvmlEventSetWait_v2);
SYMBOL(nvmlDeviceGetCurrPcieLinkGeneration); SYMBOL(nvmlDeviceGetCurrPcieLinkWidth); SYMBOL(nvmlDeviceGetProcessUtilization);
SYMBOL(nvmlDeviceGetPcieReplayCounter);

static const uint32_t fast_fields[] = {186, 82};
static const uint32_t slow_fields[] = {83, 3, 4, 5, 6, 74, 75, 94, 142, 143, 144, 145, 230};
/* The last one is dear (1 ms): asked with the slow fields only. */
static const uint32_t gpm_ids[] = {2, 3, 5, 10, 11, 12, 13, 20, 21, 60, 61, 1};

static void fields(device_t device, const uint32_t *ids, int count) {
  field_t values[32];
  memset(values, 0, sizeof values);
  for (int i = 0; i < count; i++) values[i].field = ids[i];
  CALL(nvmlDeviceGetFieldValues, device, count, values);
}

int main(int argc, char **argv) {
  double interval = argc > 1 ? atof(argv[1]) / 1000 : 0.1;
  double seconds = argc > 2 ? atof(argv[2]) : 60;
  library = dlopen(argc > 3 ? argv[3] : "libnvidia-ml.so.1", RTLD_NOW);
  if (!library) { fprintf(stderr, "no NVML: %s\n", dlerror()); return 3; }
  if (((int (*)())find("nvmlInit_v2"))() != 0) { fprintf(stderr, "nvmlInit_v2 failed\n"); return 3; }
  uint32_t count = 0;
  ((int (*)())find("nvmlDeviceGetCount_v2"))(&count);
  device_t devices[64];
  void *samples[64][2];
  memset(samples, 0, sizeof samples);
  if (count > 64) count = 64;
  for (uint32_t i = 0; i < count; i++) {
    ((int (*)())find("nvmlDeviceGetHandleByIndex_v2"))(i, &devices[i]);
    ((int (*)())find("nvmlGpmSampleAlloc"))(&samples[i][0]);
    ((int (*)())find("nvmlGpmSampleAlloc"))(&samples[i][1]);
  }
  void *events = NULL;
  ((int (*)())find("nvmlEventSetCreate"))(&events);
  for (uint32_t i = 0; i < count; i++) ((int (*)())find("nvmlDeviceRegisterEvents"))(devices[i], (uint64_t)0x8, events);

  static metrics_t get;
  struct timespec start, next;
  clock_gettime(CLOCK_MONOTONIC, &start);
  long ticks = (long)(seconds / interval), slow_every = (long)(10 / interval), medium_every = (long)(5 / interval);
  if (slow_every < 1) slow_every = 1;
  if (medium_every < 1) medium_every = 1;
  for (long tick = 0; tick < ticks; tick++) {
    for (uint32_t i = 0; i < count; i++) {
      device_t device = devices[i];
      uint64_t memory[5] = {40 | 2u << 24, 0, 0, 0, 0};
      uint32_t two[2], one, clock;
      uint64_t reasons;
      unsigned char list[24 * 64];
      CALL(nvmlDeviceGetMemoryInfo_v2, device, memory);
      CALL(nvmlDeviceGetUtilizationRates, device, two);
      CALL(nvmlDeviceGetTemperature, device, 0, &one);
      for (int type = 0; type < 4; type++) CALL(nvmlDeviceGetClockInfo, device, type, &clock);
      CALL(nvmlDeviceGetCurrentClocksEventReasons, device, &reasons);
      CALL(nvmlDeviceGetPerformanceState, device, &one);
      CALL(nvmlDeviceGetEncoderUtilization, device, &one, &clock);
      CALL(nvmlDeviceGetDecoderUtilization, device, &one, &clock);
      one = 64;
      CALL(nvmlDeviceGetComputeRunningProcesses_v3, device, &one, list);
      one = 64;
      CALL(nvmlDeviceGetGraphicsRunningProcesses_v3, device, &one, list);
      fields(device, fast_fields, 2);
      if (samples[i][0]) {
        CALL(nvmlGpmSampleGet, device, samples[i][tick & 1]);
        if (tick > 0) {
          get.version = 1;
          get.count = sizeof gpm_ids / sizeof *gpm_ids - (tick % slow_every == 0 ? 0 : 1);
          get.first = samples[i][(tick + 1) & 1];
          get.second = samples[i][tick & 1];
          for (uint32_t m = 0; m < get.count; m++) get.metrics[m].id = gpm_ids[m];
          CALL(nvmlGpmMetricsGet, &get);
        }
      }
      if (tick % slow_every == 0) {
        fields(device, slow_fields, sizeof slow_fields / sizeof *slow_fields);
        CALL(nvmlDeviceGetCurrPcieLinkGeneration, device, &one);
        CALL(nvmlDeviceGetCurrPcieLinkWidth, device, &one);
      }
      if (tick % medium_every == 0) {
        unsigned char used[32 * 64];
        one = 64;
        CALL(nvmlDeviceGetProcessUtilization, device, used, &one, (uint64_t)0);
      }
    }
    uint64_t data[4];
    CALL(nvmlEventSetWait_v2, events, data, 0);
    double due = (tick + 1) * interval;
    next = start;
    next.tv_sec += (time_t)due;
    next.tv_nsec += (long)((due - (time_t)due) * 1e9);
    if (next.tv_nsec >= 1000000000) { next.tv_sec++; next.tv_nsec -= 1000000000; }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
  }
  return 0;
}
