/*
 * A stand-in for libnvidia-ml.so: the calls that gpuwarden makes, answered from a script (see README.md).
 * -DOLD_DRIVER leaves out what a driver of the 390 series does not have; -DNO_GPM leaves out GPM; -DPROCESSES_V2 the v3 lists.
 */
#define _GNU_SOURCE
#include "fake-nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static handle gpus[MAX_GPUS];
static handle migs[MAX_GPUS][MAX_MIG];
static int events_sent;

static int64_t number(const handle *device, const char *key, int64_t otherwise) { return script_number(device->gpu, key, otherwise); }

/* Compute instances in each GPU instance. */
static int mig_compute(int gpu) { return (int)script_number(gpu, "mig_compute", 1); }

static int put_text(char *out, unsigned room, const char *text) {
  if (room < strlen(text) + 1) return INSUFFICIENT_SIZE;
  memcpy(out, text, strlen(text) + 1);
  return OK;
}

/* A figure that this card has only when the script names it. */
static int optional(const handle *device, const char *key, unsigned *out) {
  if (!script_has(device->gpu, key)) return NOT_SUPPORTED;
  *out = (unsigned)number(device, key, 0);
  return OK;
}

/* ---- the library ---- */

API int nvmlInit_v2(void) {
  script_thaw();
  script_check();
  calls_reset();
  events_sent = 0;
  for (int i = 0; i < MAX_GPUS; i++) {
    gpus[i] = (handle){i, -1};
    for (int j = 0; j < MAX_MIG; j++) migs[i][j] = (handle){i, j};
  }
  ENTER(-1);
  return (int)script_number(-1, "init", OK);
}

API int nvmlShutdown(void) {
  ENTER(-1);
  calls_dump();
  return OK;
}

API int nvmlSystemGetDriverVersion(char *out, unsigned room) {
  ENTER(-1);
  const char *text = script_text(-1, "driver");
  return put_text(out, room, text ? text : "580.159.04");
}

API int nvmlSystemGetNVMLVersion(char *out, unsigned room) {
  ENTER(-1);
  const char *text = script_text(-1, "nvml");
  return put_text(out, room, text ? text : "13.580.159.04");
}

#ifndef OLD_DRIVER
API int nvmlSystemGetCudaDriverVersion_v2(int *out) {
  ENTER(-1);
  *out = (int)script_number(-1, "cuda", 13000);
  return OK;
}
#endif

API int nvmlDeviceGetCount_v2(unsigned *out) {
  ENTER(-1);
  *out = (unsigned)gpu_count();
  return OK;
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle **out) {
  ENTER((int)index);
  if (index >= (unsigned)gpu_count()) return INVALID_ARGUMENT;
  *out = &gpus[index];
  return OK;
}

/* ---- who it is ---- */

API int nvmlDeviceGetName(handle *device, char *out, unsigned room) {
  ENTER_DEVICE(device);
  const char *name = script_text(device->gpu, "name");
  if (!name) name = "NVIDIA H200";
  if (device->mig < 0) return put_text(out, room, name);
  char text[96];
  int share = mig_compute(device->gpu);
  snprintf(text, sizeof text, "%s MIG %s%dg.%dgb", name, share > 1 ? "1c." : "", share, (int)(memory_total(device) / 1000000000));
  return put_text(out, room, text);
}

API int nvmlDeviceGetUUID(handle *device, char *out, unsigned room) {
  ENTER_DEVICE(device);
  char text[96];
  const char *uuid = script_text(device->gpu, "uuid");
  if (device->mig >= 0)
    snprintf(text, sizeof text, "MIG-%08x-%04x-5000-8000-%012x", device->gpu, (int)number(device, "mig_generation", 0), device->mig);
  else if (uuid)
    snprintf(text, sizeof text, "%s", uuid);
  else
    snprintf(text, sizeof text, "GPU-fa4e0000-0000-4000-8000-%012x", device->gpu);
  return put_text(out, room, text);
}

API int nvmlDeviceGetSerial(handle *device, char *out, unsigned room) {
  ENTER_DEVICE(device);
  const char *serial = script_text(device->gpu, "serial");
  char text[32];
  snprintf(text, sizeof text, "16500230%05d", device->gpu);
  return put_text(out, room, serial ? serial : text);
}

API int nvmlDeviceGetVbiosVersion(handle *device, char *out, unsigned room) {
  ENTER_DEVICE(device);
  const char *version = script_text(device->gpu, "vbios");
  return put_text(out, room, version ? version : "96.00.A5.00.03");
}

API int nvmlDeviceGetBoardPartNumber(handle *device, char *out, unsigned room) {
  ENTER_DEVICE(device);
  const char *number = script_text(device->gpu, "part_number");
  return put_text(out, room, number ? number : "692-2G520-0282-000");
}

API int nvmlDeviceGetCudaComputeCapability(handle *device, int *major, int *minor) {
  ENTER_DEVICE(device);
  *major = (int)number(device, "compute_major", 9);
  *minor = (int)number(device, "compute_minor", 0);
  return OK;
}

API int nvmlDeviceGetComputeMode(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  *out = (unsigned)number(device, "compute_mode", 0);
  return OK;
}

API int nvmlDeviceGetMinorNumber(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  *out = (unsigned)number(device, "minor", device->gpu);
  return OK;
}

API int nvmlDeviceGetEccMode(handle *device, unsigned *current, unsigned *pending) {
  ENTER_DEVICE(device);
  if (number(device, "ecc_mode", 1) < 0) return NOT_SUPPORTED;
  *current = (unsigned)number(device, "ecc_mode", 1);
  *pending = (unsigned)number(device, "ecc_mode_pending", *current);
  return OK;
}

API int nvmlDeviceGetPersistenceMode(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  *out = (unsigned)number(device, "persistence", 1);
  return OK;
}

API int nvmlDeviceGetBAR1MemoryInfo(handle *device, uint64_t *out) {
  ENTER_DEVICE(device);
  out[0] = (uint64_t)number(device, "bar1_total", 274877906944);
  out[2] = (uint64_t)number(device, "bar1_used", 1048576);
  out[1] = out[0] - out[2];
  return OK;
}

#ifndef OLD_DRIVER
API int nvmlSystemGetConfComputeState(uint32_t *out) {
  ENTER(-1);
  int64_t state = script_number(-1, "confidential", 0);
  if (state < 0) return NOT_SUPPORTED;
  out[0] = state ? 2 : 0;
  out[1] = state > 0;
  out[2] = state > 1;
  return OK;
}

API int nvmlDeviceGetGspFirmwareVersion(handle *device, char *out) {
  ENTER_DEVICE(device);
  const char *version = script_text(device->gpu, "gsp");
  return version && !*version ? NOT_SUPPORTED : put_text(out, 64, version ? version : "580.159.04");
}

typedef struct {
  uint32_t version;
  unsigned char guid[16], chassis[16];
  unsigned char slot, tray, host, peer, module;
} platform_info;

API int nvmlDeviceGetPlatformInfo(handle *device, platform_info *out) {
  ENTER_DEVICE(device);
  const char *chassis = script_text(device->gpu, "chassis");
  if (!chassis) return NOT_SUPPORTED;
  if (out->version != (sizeof *out | 2u << 24)) return ARGUMENT_VERSION_MISMATCH;
  memset(out->guid, 0xfa, sizeof out->guid);
  strncpy((char *)out->chassis, chassis, sizeof out->chassis);
  out->slot = (unsigned char)number(device, "slot", 11);
  out->tray = (unsigned char)number(device, "tray", 12);
  out->host = (unsigned char)number(device, "host", 13);
  out->peer = 99;
  out->module = (unsigned char)number(device, "module", 14);
  return OK;
}

API int nvmlDeviceGetRepairStatus(handle *device, uint32_t *out) {
  ENTER_DEVICE(device);
  if (out[0] != (12 | 1u << 24)) return ARGUMENT_VERSION_MISMATCH;
  out[1] = (uint32_t)number(device, "channel_repair", 0);
  out[2] = (uint32_t)number(device, "tpc_repair", 0);
  return OK;
}

API int nvmlDeviceGetMarginTemperature(handle *device, int32_t *out) {
  ENTER_DEVICE(device);
  if ((uint32_t)out[0] != (8 | 1u << 24)) return ARGUMENT_VERSION_MISMATCH;
  out[1] = (int32_t)number(device, "margin", 87 - (int64_t)temperature(device));
  return OK;
}

API int nvmlDeviceGetJpgUtilization(handle *device, unsigned *out, unsigned *period) {
  ENTER_DEVICE(device);
  *out = (unsigned)number(device, "jpeg", 0);
  *period = 167000;
  return OK;
}

API int nvmlDeviceGetOfaUtilization(handle *device, unsigned *out, unsigned *period) {
  ENTER_DEVICE(device);
  *out = (unsigned)number(device, "ofa", 0);
  *period = 167000;
  return OK;
}
#endif

/* nvlinks=N: the card has so many; nvlink_down=LINK: that one is inactive. */
API int nvmlDeviceGetNvLinkState(handle *device, unsigned link, unsigned *out) {
  ENTER_DEVICE(device);
  if (link >= (unsigned)number(device, "nvlinks", 0)) return link ? INVALID_ARGUMENT : NOT_SUPPORTED;
  *out = (int64_t)link != number(device, "nvlink_down", -1);
  return OK;
}

/* Each link and each kind of error has a figure of its own. */
static uint64_t link_errors(const handle *device, uint32_t link, unsigned kind) {
  return (uint64_t)number(device, "nvlink_errors", 0) * (1000 * (kind + 1) + link);
}

API int nvmlDeviceGetNvLinkErrorCounter(handle *device, unsigned link, int counter, uint64_t *out) {
  ENTER_DEVICE(device);
  if (link >= (unsigned)number(device, "nvlinks", 0)) return NOT_SUPPORTED;
  static const unsigned kinds[] = {0, 1, 9, 2};
  if (counter < 0 || counter > 3) return INVALID_ARGUMENT;
  *out = link_errors(device, link, kinds[counter]);
  return OK;
}

typedef struct {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
} pci_info;

API int nvmlDeviceGetPciInfo_v3(handle *device, pci_info *out) {
  ENTER_DEVICE(device);
  memset(out, 0, sizeof *out);
  out->bus = (unsigned)number(device, "pci_bus", 0x10 + device->gpu);
  out->device_id = 0x233510de;
  out->subsystem_id = 0x18bf10de;
  snprintf(out->legacy, sizeof out->legacy, "0000:%02X:00.0", out->bus & 0xff);
  snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", out->bus & 0xff);
  return OK;
}

#ifndef OLD_DRIVER
API int nvmlDeviceGetArchitecture(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  *out = (unsigned)number(device, "arch", 9);
  return OK;
}
#endif

/* ---- what it can do ---- */

API int nvmlDeviceGetPowerManagementLimit(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  *out = (unsigned)number(device, "power_limit", 700000);
  return OK;
}

API int nvmlDeviceGetPowerManagementDefaultLimit(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  *out = (unsigned)number(device, "power_limit_default", 700000);
  return OK;
}

API int nvmlDeviceGetEnforcedPowerLimit(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  *out = (unsigned)number(device, "power_limit_enforced", number(device, "power_limit", 700000));
  return OK;
}

API int nvmlDeviceGetPowerManagementLimitConstraints(handle *device, unsigned *least, unsigned *most) {
  ENTER_DEVICE(device);
  *least = (unsigned)number(device, "power_limit_min", 200000);
  *most = (unsigned)number(device, "power_limit_max", 700000);
  return OK;
}

API int nvmlDeviceGetMaxClockInfo(handle *device, int type, unsigned *out) {
  ENTER_DEVICE(device);
  if (type < 0 || type > 3) return INVALID_ARGUMENT;
  *out = max_clock_megahertz(device, type);
  return OK;
}

API int nvmlDeviceGetTemperatureThreshold(handle *device, int type, unsigned *out) {
  ENTER_DEVICE(device);
  static const char *const keys[] = {"temp_shutdown", "temp_slowdown", "temp_memory_max", "temp_max"};
  static const int defaults[] = {95, 89, 95, 87};
  if (type < 0 || type > 3) return INVALID_ARGUMENT;
  *out = (unsigned)number(device, keys[type], defaults[type]);
  return OK;
}

API int nvmlDeviceGetMaxPcieLinkGeneration(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  *out = (unsigned)number(device, "pcie_gen_max", 5);
  return OK;
}

API int nvmlDeviceGetMaxPcieLinkWidth(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  *out = (unsigned)number(device, "pcie_width_max", 16);
  return OK;
}

/* ---- how it is ---- */

API int nvmlDeviceGetMemoryInfo(handle *device, uint64_t *out) {
  ENTER_DEVICE(device);
  uint64_t used = memory_used(device) + memory_reserved(device);
  out[0] = memory_total(device);
  out[1] = out[0] - used;
  out[2] = used;
  return OK;
}

#ifndef OLD_DRIVER
API int nvmlDeviceGetMemoryInfo_v2(handle *device, uint64_t *out) {
  ENTER_DEVICE(device);
  if (*(uint32_t *)out != (40 | 2 << 24)) return 25;
  out[1] = memory_total(device);
  out[2] = memory_reserved(device);
  out[4] = memory_used(device);
  out[3] = out[1] - out[2] - out[4];
  return OK;
}
#endif

API int nvmlDeviceGetUtilizationRates(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  if (mig_count(device->gpu) >= 0) return NOT_SUPPORTED;
  out[0] = utilization(device);
  out[1] = (unsigned)number(device, "mem_util", out[0] / 2);
  return OK;
}

API int nvmlDeviceGetTemperature(handle *device, int sensor, unsigned *out) {
  ENTER_DEVICE(device);
  if (sensor != 0) return INVALID_ARGUMENT;
  *out = temperature(device);
  return OK;
}

API int nvmlDeviceGetPowerUsage(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  *out = power_milliwatts(device);
  return OK;
}

API int nvmlDeviceGetClockInfo(handle *device, int type, unsigned *out) {
  ENTER_DEVICE(device);
  if (type < 0 || type > 3) return INVALID_ARGUMENT;
  *out = clock_megahertz(device, type);
  return OK;
}

#ifdef OLD_DRIVER
API int nvmlDeviceGetCurrentClocksThrottleReasons(handle *device, uint64_t *out) {
#else
API int nvmlDeviceGetCurrentClocksEventReasons(handle *device, uint64_t *out) {
#endif
  ENTER_DEVICE(device);
  *out = (uint64_t)number(device, "reasons", power_milliwatts(device) > 640000 ? 4 : 0);
  return OK;
}

API int nvmlDeviceGetPerformanceState(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  *out = (unsigned)number(device, "pstate", 0);
  return OK;
}

API int nvmlDeviceGetEncoderUtilization(handle *device, unsigned *out, unsigned *period) {
  ENTER_DEVICE(device);
  *out = (unsigned)number(device, "encoder", 0);
  *period = 167000;
  return OK;
}

API int nvmlDeviceGetDecoderUtilization(handle *device, unsigned *out, unsigned *period) {
  ENTER_DEVICE(device);
  *out = (unsigned)number(device, "decoder", 0);
  *period = 167000;
  return OK;
}

API int nvmlDeviceGetFanSpeed(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  return optional(device, "fan", out);
}

API int nvmlDeviceGetTotalEnergyConsumption(handle *device, uint64_t *out) {
  ENTER_DEVICE(device);
  *out = energy_millijoules(device);
  return OK;
}

API int nvmlDeviceGetCurrPcieLinkGeneration(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  *out = (unsigned)number(device, "pcie_gen", 5);
  return OK;
}

API int nvmlDeviceGetCurrPcieLinkWidth(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  *out = (unsigned)number(device, "pcie_width", 16);
  return OK;
}

API int nvmlDeviceGetPcieReplayCounter(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  *out = (unsigned)number(device, "replay", 0);
  return OK;
}

/* 0 corrected, 1 uncorrected; 0 volatile, 1 aggregate. */
API int nvmlDeviceGetTotalEccErrors(handle *device, int type, int counter, uint64_t *out) {
  ENTER_DEVICE(device);
  static const char *const keys[2][2] = {{"ecc_corrected", "ecc_corrected_aggregate"}, {"ecc_uncorrected", "ecc_uncorrected_aggregate"}};
  *out = (uint64_t)number(device, keys[type & 1][counter & 1], 0);
  return OK;
}

#ifndef OLD_DRIVER
typedef struct {
  unsigned char cluster[16];
  uint32_t status, clique;
  unsigned char state;
} fabric_info;

typedef struct {
  uint32_t version;
  fabric_info info;
  uint32_t health;
  unsigned char summary;
} fabric_info_v3;

/* What stands beside the state is never a state, so that a wrong offset shows. */
static int put_fabric(const handle *device, fabric_info *out) {
  unsigned state;
  int code = optional(device, "fabric_state", &state);
  if (code != OK) return code;
  *out = (fabric_info){.status = 77, .clique = (uint32_t)number(device, "fabric_clique", 32766), .state = (unsigned char)state};
  memset(out->cluster, 0xfa, sizeof out->cluster);
  return OK;
}

API int nvmlDeviceGetGpuFabricInfo(handle *device, fabric_info *out) {
  ENTER_DEVICE(device);
  return put_fabric(device, out);
}

API int nvmlDeviceGetGpuFabricInfoV(handle *device, fabric_info_v3 *out) {
  ENTER_DEVICE(device);
  unsigned newest = (unsigned)number(device, "fabric_version", 3);
  if (out->version != (40 | 3u << 24) && out->version != (36 | 2u << 24)) return ARGUMENT_VERSION_MISMATCH;
  if (out->version >> 24 > newest) return ARGUMENT_VERSION_MISMATCH;
  out->health = (uint32_t)number(device, "fabric_health_mask", 0);
  if (out->version >> 24 == 3) out->summary = (unsigned char)number(device, "fabric_health", 0);
  return put_fabric(device, &out->info);
}
#endif

/* Sleeps on real hardware: a test proves that it is called rarely, and not at all where there is another way. In KiB. */
API int nvmlDeviceGetPcieThroughput(handle *device, int direction, unsigned *out) {
  ENTER_DEVICE(device);
  *out = direction ? 1143 : 572;
  return OK;
}

/* ---- field values ---- */

#ifndef OLD_DRIVER
typedef struct {
  uint32_t id, scope;
  int64_t timestamp, latency;
  uint32_t type;
  int32_t code;
  union {
    double d;
    uint32_t u;
    uint64_t ull;
    int32_t i;
  } value;
} field_value;

enum { TYPE_UINT = 1, TYPE_ULL = 3, TYPE_INT = 5 };

static void put_field(field_value *field, uint32_t type, uint64_t value) {
  field->type = type;
  field->value.ull = value;
}

static int read_field(const handle *device, field_value *field) {
  int64_t fixed;
  int code;
  if (script_field_return(device->gpu, field->id, &code)) return code;
  if (script_field_value(device->gpu, field->id, &fixed)) {
    put_field(field, fixed < 0 ? TYPE_INT : TYPE_ULL, fixed < 0 ? (uint32_t)(int32_t)fixed : (uint64_t)fixed);
    return OK;
  }
  int64_t links = number(device, field->id >= 170 && field->id <= 172 ? "c2c" : "nvlinks", 0);
  switch (field->id) {
    case 91:
    case 170:
      put_field(field, TYPE_UINT, (uint64_t)links);
      return links ? OK : NOT_SUPPORTED;
    case 161:
    case 162:
    case 163: put_field(field, TYPE_ULL, link_errors(device, field->scope, field->id - 161)); return field->scope < links ? OK : NOT_SUPPORTED;
    case 164: put_field(field, TYPE_UINT, 26562); return field->scope < links ? OK : NOT_SUPPORTED;
    case 165: put_field(field, TYPE_UINT, field->scope != number(device, "nvlink_down", -1)); return field->scope < links ? OK : NOT_SUPPORTED;
    case 166: put_field(field, TYPE_UINT, 6); return field->scope < links ? OK : NOT_SUPPORTED;
    case 171: put_field(field, TYPE_UINT, 1); return field->scope < links ? OK : NOT_SUPPORTED;
    case 172: put_field(field, TYPE_UINT, 44712); return field->scope < links ? OK : NOT_SUPPORTED;
    case 251:
      put_field(field, TYPE_UINT, (uint64_t)number(device, "power_smoothing", 0));
      return script_has(device->gpu, "power_smoothing") ? OK : NOT_SUPPORTED;
    case 269:
    case 270:
    case 271: put_field(field, TYPE_ULL, 0); return OK;
    case 3: put_field(field, TYPE_ULL, (uint64_t)number(device, "ecc_corrected", 0)); return OK;
    case 4: put_field(field, TYPE_ULL, (uint64_t)number(device, "ecc_uncorrected", 0)); return OK;
    case 5: put_field(field, TYPE_ULL, (uint64_t)number(device, "ecc_corrected_aggregate", 0)); return OK;
    case 6: put_field(field, TYPE_ULL, (uint64_t)number(device, "ecc_uncorrected_aggregate", 0)); return OK;
    case 74:
    case 75: put_field(field, TYPE_ULL, 0); return OK;
    case 82: put_field(field, TYPE_UINT, (uint64_t)number(device, "mem_temp", temperature(device) + 4)); return OK;
    case 83: put_field(field, TYPE_ULL, energy_millijoules(device)); return OK;
    case 94: put_field(field, TYPE_UINT, (uint64_t)number(device, "replay", 0)); return OK;
    /* All links together, KiB since the driver was loaded. */
    case 138: put_field(field, TYPE_ULL, (uint64_t)(seconds() * 40e6)); return field->scope == UINT32_MAX ? OK : INVALID_ARGUMENT;
    case 139: put_field(field, TYPE_ULL, (uint64_t)(seconds() * 41e6)); return field->scope == UINT32_MAX ? OK : INVALID_ARGUMENT;
    case 142:
    case 143:
    case 144:
    case 145: put_field(field, TYPE_UINT, 0); return OK;
    case 185:
    case 186:
      if (field->scope) {
        const char *key = field->scope == 1 ? "module_power" : "memory_power";
        put_field(field, TYPE_UINT, (uint64_t)number(device, key, 0));
        return script_has(device->gpu, key) ? OK : NOT_SUPPORTED;
      }
      put_field(field, TYPE_UINT, power_milliwatts(device));
      return OK;
    case 193: put_field(field, TYPE_INT, (uint32_t)-8); return OK;
    case 194: put_field(field, TYPE_INT, (uint32_t)-2); return OK;
    case 196: put_field(field, TYPE_INT, 0); return OK;
    case 197: put_field(field, TYPE_ULL, (uint64_t)(seconds() * 3e9)); return OK;
    case 198: put_field(field, TYPE_ULL, (uint64_t)(seconds() * 5e9)); return OK;
    case 230: put_field(field, TYPE_UINT, (uint64_t)number(device, "recovery_action", 0)); return OK;
    default: return NOT_SUPPORTED;
  }
}

API int nvmlDeviceGetFieldValues(handle *device, int count, field_value *fields) {
  ENTER_DEVICE(device);
  for (int i = 0; i < count; i++) {
    fields[i].timestamp = (int64_t)(seconds() * 1e6);
    fields[i].latency = 1;
    fields[i].code = read_field(device, &fields[i]);
  }
  return OK;
}
#endif

/* ---- processes ---- */

/* graphics=N of the processes are graphics ones; `both=1` puts the first compute process into both lists. */
static int process_list(const handle *device, int graphics, unsigned *count, unsigned char *out, size_t stride) {
  unsigned total = (unsigned)number(device, graphics ? "graphics" : "processes", graphics ? 0 : 1);
  int both = graphics && number(device, "both", 0);
  unsigned present = total + (both ? 1 : 0);
  stride = (size_t)number(device, "stride", (int64_t)stride);
  /* grow=N: for N calls there is always one more than there was room for. */
  static int growths;
  static int64_t grow_seen = -1;
  int64_t grow = number(device, "grow", 0);
  if (grow != grow_seen) {
    grow_seen = grow;
    growths = 0;
  }
  if (*count > 0 && growths < grow && !graphics) {
    growths++;
    *count = *count + 1;
    return INSUFFICIENT_SIZE;
  }
  unsigned room = *count;
  *count = present;
  if (present == 0) return OK;
  if (room < present) return INSUFFICIENT_SIZE;
  const char *pids = script_text(device->gpu, graphics ? "graphics_pids" : "pids");
  for (unsigned i = 0; i < present; i++) {
    unsigned pid = 10000u + (unsigned)device->gpu * 1000u + (unsigned)(device->mig + 1) * 100u + i + (graphics && !both ? 500u : 0u);
    if (pids && *pids) {
      char *rest;
      pid = (unsigned)strtoul(pids, &rest, 10);
      pids = *rest == ',' ? rest + 1 : NULL;
    }
    unsigned char *entry = out + (size_t)i * stride;
    uint64_t memory = process_memory(device, (int)i, (int)present);
    memcpy(entry, &pid, 4);
    if (stride >= 16) memcpy(entry + 8, &memory, 8);
    uint32_t instance = device->mig >= 0 ? (uint32_t)device->mig : UINT32_MAX;
    if (stride >= 24) {
      memcpy(entry + 16, &instance, 4);
      memcpy(entry + 20, &instance, 4);
    }
    if (stride >= 32) memset(entry + 24, 0, 8);
  }
  return OK;
}

API int nvmlDeviceGetComputeRunningProcesses(handle *device, unsigned *count, unsigned char *out) {
  ENTER_DEVICE(device);
  return process_list(device, 0, count, out, 16);
}

API int nvmlDeviceGetGraphicsRunningProcesses(handle *device, unsigned *count, unsigned char *out) {
  ENTER_DEVICE(device);
  return process_list(device, 1, count, out, 16);
}

#ifndef OLD_DRIVER
API int nvmlDeviceGetComputeRunningProcesses_v2(handle *device, unsigned *count, unsigned char *out) {
  ENTER_DEVICE(device);
  return process_list(device, 0, count, out, 24);
}

API int nvmlDeviceGetGraphicsRunningProcesses_v2(handle *device, unsigned *count, unsigned char *out) {
  ENTER_DEVICE(device);
  return process_list(device, 1, count, out, 24);
}

#ifndef PROCESSES_V2
API int nvmlDeviceGetComputeRunningProcesses_v3(handle *device, unsigned *count, unsigned char *out) {
  ENTER_DEVICE(device);
  return process_list(device, 0, count, out, 24);
}

API int nvmlDeviceGetGraphicsRunningProcesses_v3(handle *device, unsigned *count, unsigned char *out) {
  ENTER_DEVICE(device);
  return process_list(device, 1, count, out, 24);
}
#endif

typedef struct {
  uint32_t pid;
  uint64_t timestamp;
  uint32_t sm, memory, encoder, decoder;
} utilization_sample;

/* One sample per compute process, newer than `since`; NOT_FOUND when the GPU idles (util_samples=0). */
API int nvmlDeviceGetProcessUtilization(handle *device, utilization_sample *out, unsigned *count, uint64_t since) {
  ENTER_DEVICE(device);
  if (device->mig >= 0 || mig_count(device->gpu) >= 0) return NOT_SUPPORTED;
  unsigned present = (unsigned)number(device, "util_samples", number(device, "processes", 1));
  uint64_t now = (uint64_t)number(device, "util_timestamp", (int64_t)epoch_micros());
  if (present == 0 || (now <= since && !script_has(device->gpu, "util_timestamp"))) return NOT_FOUND;
  unsigned room = *count;
  *count = present;
  if (!out || room < present) return INSUFFICIENT_SIZE;
  const char *pids = script_text(device->gpu, "pids");
  for (unsigned i = 0; i < present; i++) {
    unsigned pid = 10000u + (unsigned)device->gpu * 1000u + i;
    if (pids && *pids) {
      char *rest;
      pid = (unsigned)strtoul(pids, &rest, 10);
      pids = *rest == ',' ? rest + 1 : NULL;
    }
    out[i] = (utilization_sample){pid, now, (uint32_t)number(device, "process_sm", utilization(device) / present), (uint32_t)number(device, "process_mem", 20), 0, 0};
  }
  return OK;
}
#endif

/* ---- events ---- */

typedef struct {
  handle *device;
  uint64_t type, data;
  uint32_t gpu_instance, compute_instance;
} event_data;

static int event_set;

API int nvmlEventSetCreate(int **out) {
  ENTER(-1);
  *out = &event_set;
  return OK;
}

API int nvmlEventSetFree(int *set) {
  ENTER(-1);
  return set == &event_set ? OK : INVALID_ARGUMENT;
}

API int nvmlDeviceGetSupportedEventTypes(handle *device, uint64_t *out) {
  ENTER_DEVICE(device);
  *out = (uint64_t)number(device, "events_mask", 65439);
  return OK;
}

API int nvmlDeviceRegisterEvents(handle *device, uint64_t mask, int *set) {
  ENTER_DEVICE(device);
  if (set != &event_set || (mask & ~(uint64_t)number(device, "events_mask", 65439))) return INVALID_ARGUMENT;
  return OK;
}

/* Each `event=` line is delivered once, in order; lines added later are delivered later. */
static int wait_event(event_data *out) {
  int gpu;
  uint64_t type, data;
  if (!script_event(events_sent, &gpu, &type, &data)) return TIMEOUT;
  events_sent++;
  out->device = gpu >= 0 && gpu < MAX_GPUS ? &gpus[gpu] : NULL;
  out->type = type;
  out->data = data;
  return OK;
}

#ifdef OLD_DRIVER
API int nvmlEventSetWait(int *set, event_data *out, unsigned timeout) {
  ENTER(-1);
  (void)timeout;
  return set == &event_set ? wait_event(out) : INVALID_ARGUMENT;
}
#else
API int nvmlEventSetWait_v2(int *set, event_data *out, unsigned timeout) {
  ENTER(-1);
  (void)timeout;
  if (set != &event_set) return INVALID_ARGUMENT;
  int code = wait_event(out);
  if (code == OK) out->gpu_instance = out->compute_instance = UINT32_MAX;
  return code;
}
#endif

/* ---- MIG ---- */

#ifndef OLD_DRIVER
API int nvmlDeviceGetMigMode(handle *device, unsigned *current, unsigned *pending) {
  ENTER_DEVICE(device);
  if (number(device, "mig_unsupported", 0)) return NOT_SUPPORTED;
  *current = *pending = mig_count(device->gpu) >= 0;
  return OK;
}

API int nvmlDeviceGetMaxMigDeviceCount(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  *out = mig_count(device->gpu) >= 0 ? 7 : 0;
  return OK;
}

/* The slots are filled from the second on: an empty one answers NOT_FOUND. */
API int nvmlDeviceGetMigDeviceHandleByIndex(handle *device, unsigned index, handle **out) {
  ENTER_DEVICE(device);
  int count = mig_count(device->gpu);
  if (count < 0) return NOT_SUPPORTED;
  if (index > 6) return INVALID_ARGUMENT;
  if (index == 0 ? count < 7 : (int)index > count) return NOT_FOUND;
  *out = &migs[device->gpu][count < 7 ? index - 1 : index];
  return OK;
}

API int nvmlDeviceGetGpuInstanceId(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  if (device->mig < 0) return NOT_SUPPORTED;
  *out = (unsigned)(device->mig / mig_compute(device->gpu)) + 1;
  return OK;
}

API int nvmlDeviceGetComputeInstanceId(handle *device, unsigned *out) {
  ENTER_DEVICE(device);
  if (device->mig < 0) return NOT_SUPPORTED;
  *out = (unsigned)(device->mig % mig_compute(device->gpu));
  return OK;
}

typedef struct {
  uint32_t multiprocessors, copy, decoder, encoder, jpeg, ofa, gpu_slices, compute_slices;
  uint64_t memory_mib;
} attributes;

API int nvmlDeviceGetAttributes_v2(handle *device, attributes *out) {
  ENTER_DEVICE(device);
  if (device->mig < 0) return NOT_SUPPORTED;
  memset(out, 0, sizeof *out);
  out->multiprocessors = 16;
  out->gpu_slices = (uint32_t)mig_compute(device->gpu);
  out->compute_slices = 1;
  out->memory_mib = memory_total(device) / (1024 * 1024);
  return OK;
}
#endif

/* ---- GPM ---- */

#if !defined(OLD_DRIVER) && !defined(NO_GPM)
typedef struct {
  int gpu, instance;
  double at;
} gpm_sample;

typedef struct {
  uint32_t id;
  int32_t code;
  double value;
  const char *short_name, *long_name, *unit;
} gpm_metric;

typedef struct {
  uint32_t version, count;
  gpm_sample *first, *second;
  gpm_metric metrics[];
} gpm_request;

API int nvmlGpmQueryDeviceSupport(handle *device, uint32_t *out) {
  ENTER_DEVICE(device);
  if (out[0] != 1) return 25;
  out[1] = (uint32_t)number(device, "gpm", 1);
  return OK;
}

API int nvmlGpmSampleAlloc(gpm_sample **out) {
  ENTER(-1);
  *out = calloc(1, sizeof **out);
  return OK;
}

API int nvmlGpmSampleFree(gpm_sample *sample) {
  ENTER(-1);
  free(sample);
  return OK;
}

API int nvmlGpmSampleGet(handle *device, gpm_sample *sample) {
  ENTER_DEVICE(device);
  *sample = (gpm_sample){device->gpu, -1, seconds()};
  return OK;
}

API int nvmlGpmMigSampleGet(handle *device, unsigned instance, gpm_sample *sample) {
  ENTER_DEVICE(device);
  *sample = (gpm_sample){device->gpu, (int)instance, seconds()};
  return OK;
}

API int nvmlGpmMetricsGet(gpm_request *request) {
  if (!request || request->version != 1) return 25;
  ENTER(request->first ? request->first->gpu : -1);
  if (!request->first || !request->second || request->first->at >= request->second->at) return INVALID_ARGUMENT;
  handle device = {request->second->gpu, -1};
  double busy = utilization(&device);
  for (uint32_t i = 0; i < request->count; i++) {
    gpm_metric *metric = &request->metrics[i];
    metric->code = OK;
    char key[16];
    snprintf(key, sizeof key, "gpm_%u", metric->id);
    const char *fixed = script_text(device.gpu, key);
    if (fixed) {
      metric->value = strtod(fixed, NULL);
      continue;
    }
    switch (metric->id) {
      case 1:
      case 2: metric->value = busy; break;
      case 3: metric->value = busy * 0.4; break;
      case 5: metric->value = busy * 0.6; break;
      case 10: metric->value = busy * 0.5; break;
      case 11: metric->value = 0; break;
      case 12: metric->value = busy * 0.1; break;
      case 13: metric->value = busy * 0.2; break;
      case 20: metric->value = 2861; break;
      case 21: metric->value = 4768; break;
      case 60: metric->value = 40039; break;
      case 61: metric->value = 39062; break;
      default: metric->code = NOT_SUPPORTED; metric->value = 0;
    }
  }
  return OK;
}
#endif
