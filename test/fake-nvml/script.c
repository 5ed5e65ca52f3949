/* The script: `key=value` lines, read again whenever the file's time, size or inode changes. */
#define _GNU_SOURCE
#include "fake-nvml.h"
#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BUCKETS 4096
#define MAX_EVENTS 256

typedef struct entry {
  struct entry *next;
  int gpu;
  char *key;
  char *value;
} entry;

static entry *buckets[BUCKETS];
static struct { int gpu; uint64_t type, data; } events[MAX_EVENTS];
static int event_count;
static rule *rules;
static int rule_count, rule_room;
static struct stat last;
static int loaded, frozen;
static char last_dump[64];

static unsigned bucket_of(int gpu, const char *key) {
  unsigned hash = 2166136261u ^ (unsigned)(gpu + 1) * 2654435761u;
  for (; *key; key++) hash = (hash ^ (unsigned char)*key) * 16777619u;
  return hash % BUCKETS;
}

static void clear(void) {
  for (int i = 0; i < BUCKETS; i++) {
    while (buckets[i]) {
      entry *gone = buckets[i];
      buckets[i] = gone->next;
      free(gone->key);
      free(gone->value);
      free(gone);
    }
  }
  for (int i = 0; i < rule_count; i++) free(rules[i].function);
  rule_count = event_count = 0;
}

/* Function[@gpu][:value], several apart by commas. */
static void add_rules(rule_kind kind, char *text) {
  for (char *save, *part = strtok_r(text, ",", &save); part; part = strtok_r(NULL, ",", &save)) {
    if (rule_count == rule_room) {
      rule_room = rule_room ? rule_room * 2 : 16;
      rules = realloc(rules, (size_t)rule_room * sizeof *rules);
    }
    rule *one = &rules[rule_count++];
    one->kind = kind;
    char *colon = strchr(part, ':');
    one->value = colon ? strtoll(colon + 1, NULL, 0) : 0;
    if (colon) *colon = 0;
    char *at = strchr(part, '@');
    one->gpu = at ? atoi(at + 1) : -1;
    if (at) *at = 0;
    one->function = strdup(part);
  }
}

static void add_line(char *line) {
  char *equals = strchr(line, '=');
  if (line[0] == '#' || !equals) return;
  *equals = 0;
  char *key = line, *value = equals + 1;
  if (!strcmp(key, "ret")) return add_rules(RULE_RETURN, value);
  if (!strcmp(key, "hang")) return add_rules(RULE_HANG, value);
  if (!strcmp(key, "crash")) return add_rules(RULE_CRASH, value);
  if (!strcmp(key, "delay_us")) return add_rules(RULE_DELAY, value);
  if (!strcmp(key, "event")) {
    if (event_count == MAX_EVENTS) return;
    char *rest;
    events[event_count].gpu = (int)strtol(value, &rest, 0);
    events[event_count].type = strtoull(*rest ? rest + 1 : rest, &rest, 0);
    events[event_count].data = strtoull(*rest ? rest + 1 : rest, &rest, 0);
    event_count++;
    return;
  }
  int gpu = -1;
  char *dot = strchr(key, '.');
  if (!strncmp(key, "gpu", 3) && dot) {
    gpu = atoi(key + 3);
    key = dot + 1;
  }
  entry *one = calloc(1, sizeof *one);
  one->gpu = gpu;
  one->key = strdup(key);
  one->value = strdup(value);
  unsigned at = bucket_of(gpu, key);
  one->next = buckets[at];
  buckets[at] = one;
}

void script_check(void) {
  if (frozen) return;
  const char *path = getenv("FAKE_NVML_SCRIPT");
  struct stat now;
  if (!path || !*path || stat(path, &now) != 0) {
    if (loaded) clear();
    loaded = 0;
    return;
  }
  if (loaded && now.st_mtim.tv_sec == last.st_mtim.tv_sec && now.st_mtim.tv_nsec == last.st_mtim.tv_nsec && now.st_size == last.st_size &&
      now.st_ino == last.st_ino)
    return;
  FILE *file = fopen(path, "re");
  if (!file) return;
  clear();
  char *line = NULL;
  size_t room = 0;
  ssize_t length;
  while ((length = getline(&line, &room, file)) > 0) {
    if (line[length - 1] == '\n') line[length - 1] = 0;
    add_line(line);
  }
  free(line);
  fclose(file);
  last = now;
  loaded = 1;
  frozen = (int)script_number(-1, "freeze", 0);
  const char *dump = script_text(-1, "dump");
  if (dump && strcmp(dump, last_dump)) {
    snprintf(last_dump, sizeof last_dump, "%s", dump);
    calls_dump();
  }
}

void script_thaw(void) { frozen = 0; }

const char *script_text(int gpu, const char *key) {
  for (entry *one = buckets[bucket_of(gpu, key)]; one; one = one->next)
    if (one->gpu == gpu && !strcmp(one->key, key)) return one->value;
  return gpu < 0 ? NULL : script_text(-1, key);
}

int script_has(int gpu, const char *key) { return script_text(gpu, key) != NULL; }

int64_t script_number(int gpu, const char *key, int64_t otherwise) {
  const char *text = script_text(gpu, key);
  if (!text || !*text) return otherwise;
  return text[0] == '-' ? strtoll(text, NULL, 0) : (int64_t)strtoull(text, NULL, 0);
}

int script_event(int n, int *gpu, uint64_t *type, uint64_t *data) {
  if (n >= event_count) return 0;
  *gpu = events[n].gpu;
  *type = events[n].type;
  *data = events[n].data;
  return 1;
}

/* Finds ID:value in a list apart by commas. */
static int in_list(const char *list, unsigned id, int64_t *value) {
  while (list && *list) {
    char *rest;
    unsigned long one = strtoul(list, &rest, 0);
    if (*rest != ':') return 0;
    int64_t found = rest[1] == '-' ? strtoll(rest + 1, &rest, 0) : (int64_t)strtoull(rest + 1, &rest, 0);
    if (one == id) {
      *value = found;
      return 1;
    }
    list = *rest == ',' ? rest + 1 : NULL;
  }
  return 0;
}

int script_field_return(int gpu, unsigned id, int *code) {
  int64_t value;
  if (!in_list(script_text(gpu, "field_ret"), id, &value)) return 0;
  *code = (int)value;
  return 1;
}

int script_field_value(int gpu, unsigned id, int64_t *value) { return in_list(script_text(gpu, "field"), id, value); }

const rule *script_rules(int *count) {
  *count = rule_count;
  return rules;
}
