/* The gate that every call passes: counted, then delayed, hung, crashed or refused as the script says. */
#define _GNU_SOURCE
#include "fake-nvml.h"
#include "script.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_FUNCTIONS 128

static struct {
  const char *name;
  uint64_t total;
  uint64_t of_gpu[MAX_GPUS];
} functions[MAX_FUNCTIONS];
static int function_count;
static uint64_t calls_of_gpu[MAX_GPUS];
static char *counts_text;

static int listed(const char *list, int gpu) {
  while (list && *list) {
    char *rest;
    long one = strtol(list, &rest, 10);
    if (rest == list) return 0;
    if (one == gpu) return 1;
    list = *rest == ',' ? rest + 1 : NULL;
  }
  return 0;
}

static int lost(int gpu) {
  if (listed(script_text(-1, "lost"), gpu)) return 1;
  const char *after = script_text(-1, "lost_after");
  if (!after || atoi(after) != gpu) return 0;
  const char *colon = strchr(after, ':');
  return colon && calls_of_gpu[gpu] > strtoull(colon + 1, NULL, 10);
}

int enter(int *slot, const char *function, int gpu) {
  script_check();
  if (*slot < 0) {
    functions[function_count].name = function;
    *slot = function_count++;
  }
  functions[*slot].total++;
  if (gpu >= 0 && gpu < MAX_GPUS) {
    functions[*slot].of_gpu[gpu]++;
    calls_of_gpu[gpu]++;
  }
  int count;
  const rule *rules = script_rules(&count);
  int refused = -1;
  for (int i = 0; i < count; i++) {
    if (strcmp(rules[i].function, function) || (rules[i].gpu >= 0 && rules[i].gpu != gpu)) continue;
    switch (rules[i].kind) {
      case RULE_DELAY: usleep((useconds_t)rules[i].value); break;
      case RULE_HANG:
        for (;;) sleep(3600);
      case RULE_CRASH: raise(SIGSEGV); break;
      case RULE_RETURN: refused = (int)rules[i].value; break;
    }
  }
  if (refused >= 0) return refused;
  if (gpu >= 0 && gpu < MAX_GPUS) {
    if (lost(gpu)) return GPU_LOST;
    if (listed(script_text(-1, "reset"), gpu)) return RESET_REQUIRED;
  }
  return -1;
}

void calls_reset(void) {
  for (int i = 0; i < function_count; i++) {
    functions[i].total = 0;
    memset(functions[i].of_gpu, 0, sizeof functions[i].of_gpu);
  }
  memset(calls_of_gpu, 0, sizeof calls_of_gpu);
}

/* One line each: `function total`, and `function@gpu count`. Valid until the next call of this function. */
API const char *fake_nvml_counts(void) {
  free(counts_text);
  size_t size;
  FILE *out = open_memstream(&counts_text, &size);
  for (int i = 0; i < function_count; i++) {
    if (!functions[i].total) continue;
    fprintf(out, "%s %llu\n", functions[i].name, (unsigned long long)functions[i].total);
    for (int gpu = 0; gpu < MAX_GPUS; gpu++)
      if (functions[i].of_gpu[gpu]) fprintf(out, "%s@%d %llu\n", functions[i].name, gpu, (unsigned long long)functions[i].of_gpu[gpu]);
  }
  fclose(out);
  return counts_text;
}

void calls_dump(void) {
  const char *path = getenv("FAKE_NVML_COUNTS");
  if (!path || !*path) return;
  char temporary[4096];
  snprintf(temporary, sizeof temporary, "%s.part", path);
  FILE *out = fopen(temporary, "we");
  if (!out) return;
  fputs(fake_nvml_counts(), out);
  fclose(out);
  rename(temporary, path);
}

int gpu_count(void) {
  int64_t count = script_number(-1, "gpus", 2);
  return count < 0 ? 0 : count > MAX_GPUS ? MAX_GPUS : (int)count;
}

int mig_count(int gpu) {
  int64_t count = script_number(gpu, "mig", -1);
  return count < 0 ? -1 : count > MAX_MIG ? MAX_MIG : (int)count;
}
