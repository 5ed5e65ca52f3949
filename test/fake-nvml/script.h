/* The rules of the script that bend a call: between script.c, which reads them, and calls.c, which obeys them. */
#ifndef FAKE_NVML_SCRIPT_H
#define FAKE_NVML_SCRIPT_H

#include <stdint.h>

typedef enum { RULE_RETURN, RULE_HANG, RULE_CRASH, RULE_DELAY } rule_kind;

typedef struct {
  rule_kind kind;
  char *function;
  int gpu; /* -1: every GPU */
  int64_t value;
} rule;

const rule *script_rules(int *count);

#endif
