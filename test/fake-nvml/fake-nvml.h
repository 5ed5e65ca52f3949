/* What the files of the fake library share. Layouts are those of NVML's public API on 64-bit Linux. */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H

#include <stdint.h>

#define API __attribute__((visibility("default")))

#define MAX_GPUS 64
#define MAX_MIG 8

enum {
  OK = 0,
  UNINITIALIZED = 1,
  INVALID_ARGUMENT = 2,
  NOT_SUPPORTED = 3,
  NOT_FOUND = 6,
  INSUFFICIENT_SIZE = 7,
  TIMEOUT = 10,
  GPU_LOST = 15,
  RESET_REQUIRED = 16,
  ARGUMENT_VERSION_MISMATCH = 25,
};

/* A device handle points at one of these. mig is -1 for a whole GPU. */
typedef struct {
  int gpu;
  int mig;
} handle;

/* ---- script.c: what the test asked for ---- */

/* Re-reads the script when it changed. */
void script_check(void);
/* Forgets `freeze=1`, so that the next library user may have a script of its own. */
void script_thaw(void);
/* The text of `gpuN.key`, else of `key`, else NULL. gpu -1 looks at `key` alone. */
const char *script_text(int gpu, const char *key);
int64_t script_number(int gpu, const char *key, int64_t otherwise);
int script_has(int gpu, const char *key);
/* The n-th `event=` line as gpu:type:data; 0 when there is none. */
int script_event(int n, int *gpu, uint64_t *type, uint64_t *data);
/* `field_ret=ID:code` and `field=ID:value`; 0 when the script is silent. */
int script_field_return(int gpu, unsigned id, int *code);
int script_field_value(int gpu, unsigned id, int64_t *value);

/* ---- calls.c: the gate every function passes ---- */

/* Counts the call, then delays, hangs, crashes or fails as the script says; -1: go on. */
int enter(int *slot, const char *function, int gpu);
void calls_reset(void);
void calls_dump(void);
int gpu_count(void);
int mig_count(int gpu);

#define ENTER(gpu)                                      \
  do {                                                  \
    static int slot_ = -1;                              \
    int code_ = enter(&slot_, __func__, (gpu));         \
    if (code_ >= 0) return code_;                       \
  } while (0)

#define ENTER_DEVICE(device)                            \
  if ((device) == 0) return INVALID_ARGUMENT;           \
  ENTER((device)->gpu)

/* ---- values.c: figures that move, unless the script fixes them ---- */

double seconds(void);
/* Wall clock, as the driver stamps process utilisation. */
uint64_t epoch_micros(void);
uint64_t memory_total(const handle *device);
uint64_t memory_reserved(const handle *device);
uint64_t memory_used(const handle *device);
unsigned utilization(const handle *device);
unsigned power_milliwatts(const handle *device);
uint64_t energy_millijoules(const handle *device);
unsigned temperature(const handle *device);
unsigned clock_megahertz(const handle *device, int type);
unsigned max_clock_megahertz(const handle *device, int type);
uint64_t process_memory(const handle *device, int position, int count);

#endif
