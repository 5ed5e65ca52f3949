/* Figures of a GPU in training: a wave each, out of step between GPUs, unless the script fixes them. */
#include "fake-nvml.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#define MIB (1024ull * 1024)

double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

uint64_t epoch_micros(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* 0..1, period in seconds. */
static double wave(const handle *device, double period) { return 0.5 + 0.5 * sin(6.283185307 * (seconds() / period + device->gpu * 0.17 + (device->mig + 1) * 0.05)); }

static int shares(const handle *device) {
  int count = mig_count(device->gpu) / (int)script_number(device->gpu, "mig_compute", 1);
  return device->mig >= 0 && count > 0 ? count : 1;
}

uint64_t memory_total(const handle *device) {
  return (uint64_t)script_number(device->gpu, "memory_total", 143771 * MIB) / (uint64_t)shares(device);
}

uint64_t memory_reserved(const handle *device) {
  return (uint64_t)script_number(device->gpu, "memory_reserved", 616 * MIB) / (uint64_t)shares(device);
}

uint64_t memory_used(const handle *device) {
  if (script_has(device->gpu, "memory_used")) return (uint64_t)script_number(device->gpu, "memory_used", 0) / (uint64_t)shares(device);
  double usable = (double)(memory_total(device) - memory_reserved(device));
  return (uint64_t)(usable * (0.55 + 0.1 * wave(device, 20))) / MIB * MIB;
}

unsigned utilization(const handle *device) { return (unsigned)script_number(device->gpu, "util", (int64_t)(80 + 19 * wave(device, 7))); }

unsigned power_milliwatts(const handle *device) {
  return (unsigned)script_number(device->gpu, "power", (int64_t)(400000 + 250000 * wave(device, 7)));
}

uint64_t energy_millijoules(const handle *device) { return (uint64_t)script_number(device->gpu, "energy", (int64_t)(seconds() * 525000)); }

unsigned temperature(const handle *device) { return (unsigned)script_number(device->gpu, "temp", (int64_t)(58 + 10 * wave(device, 60))); }

/* 0 graphics, 1 SM, 2 memory, 3 video. */
unsigned clock_megahertz(const handle *device, int type) {
  static const char *const keys[] = {"graphics_clock", "sm_clock", "mem_clock", "video_clock"};
  static const int bases[] = {1755, 1755, 3201, 1545};
  int64_t moving = type < 2 ? (int64_t)(200 * wave(device, 7)) : 0;
  return (unsigned)script_number(device->gpu, keys[type], bases[type] + moving);
}

unsigned max_clock_megahertz(const handle *device, int type) {
  static const int most[] = {1980, 1980, 3201, 1545};
  char key[32];
  snprintf(key, sizeof key, "max_clock_%d", type);
  return (unsigned)script_number(device->gpu, key, most[type]);
}

uint64_t process_memory(const handle *device, int position, int count) {
  if (script_number(device->gpu, "used_all_ones", 0)) return UINT64_MAX;
  if (script_has(device->gpu, "process_memory")) return (uint64_t)script_number(device->gpu, "process_memory", 0);
  uint64_t each = memory_used(device) / (uint64_t)(count > 0 ? count : 1);
  return each > (uint64_t)position * MIB ? each - (uint64_t)position * MIB : 0;
}
