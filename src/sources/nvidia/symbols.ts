/**
 * Every NVML function that is called, with its parameters. It returns nvmlReturn_t, always.
 * nvmlDeviceGetPcieThroughput is left out on purpose: it sleeps 20 ms per direction inside the driver.
 */

export type Parameter = 'handle' | 'buffer' | 'int' | 'uint' | 'uint64'

export const SYMBOLS = {
  nvmlInit_v2: [],
  nvmlShutdown: [],
  nvmlSystemGetDriverVersion: ['buffer', 'uint'],
  nvmlSystemGetNVMLVersion: ['buffer', 'uint'],
  nvmlSystemGetCudaDriverVersion_v2: ['buffer'],
  nvmlDeviceGetCount_v2: ['buffer'],
  nvmlDeviceGetHandleByIndex_v2: ['uint', 'buffer'],

  nvmlDeviceGetName: ['handle', 'buffer', 'uint'],
  nvmlDeviceGetUUID: ['handle', 'buffer', 'uint'],
  nvmlDeviceGetSerial: ['handle', 'buffer', 'uint'],
  nvmlDeviceGetMinorNumber: ['handle', 'buffer'],
  nvmlDeviceGetPciInfo_v3: ['handle', 'buffer'],
  nvmlDeviceGetArchitecture: ['handle', 'buffer'],
  nvmlDeviceGetCudaComputeCapability: ['handle', 'buffer', 'buffer'],
  nvmlDeviceGetVbiosVersion: ['handle', 'buffer', 'uint'],
  nvmlDeviceGetComputeMode: ['handle', 'buffer'],
  nvmlDeviceGetPowerManagementLimit: ['handle', 'buffer'],
  nvmlDeviceGetPowerManagementDefaultLimit: ['handle', 'buffer'],
  nvmlDeviceGetEnforcedPowerLimit: ['handle', 'buffer'],
  nvmlDeviceGetPowerManagementLimitConstraints: ['handle', 'buffer', 'buffer'],
  nvmlDeviceGetMaxClockInfo: ['handle', 'int', 'buffer'],
  nvmlDeviceGetTemperatureThreshold: ['handle', 'int', 'buffer'],
  nvmlDeviceGetMaxPcieLinkGeneration: ['handle', 'buffer'],
  nvmlDeviceGetMaxPcieLinkWidth: ['handle', 'buffer'],

  nvmlDeviceGetMemoryInfo: ['handle', 'buffer'],
  nvmlDeviceGetMemoryInfo_v2: ['handle', 'buffer'],
  nvmlDeviceGetUtilizationRates: ['handle', 'buffer'],
  nvmlDeviceGetTemperature: ['handle', 'int', 'buffer'],
  nvmlDeviceGetPowerUsage: ['handle', 'buffer'],
  nvmlDeviceGetClockInfo: ['handle', 'int', 'buffer'],
  nvmlDeviceGetCurrentClocksEventReasons: ['handle', 'buffer'],
  nvmlDeviceGetCurrentClocksThrottleReasons: ['handle', 'buffer'],
  nvmlDeviceGetPerformanceState: ['handle', 'buffer'],
  nvmlDeviceGetEncoderUtilization: ['handle', 'buffer', 'buffer'],
  nvmlDeviceGetDecoderUtilization: ['handle', 'buffer', 'buffer'],
  nvmlDeviceGetFanSpeed: ['handle', 'buffer'],
  nvmlDeviceGetFieldValues: ['handle', 'int', 'buffer'],
  nvmlDeviceGetTotalEnergyConsumption: ['handle', 'buffer'],
  nvmlDeviceGetTotalEccErrors: ['handle', 'int', 'int', 'buffer'],
  nvmlDeviceGetPcieReplayCounter: ['handle', 'buffer'],
  nvmlDeviceGetCurrPcieLinkGeneration: ['handle', 'buffer'],
  nvmlDeviceGetCurrPcieLinkWidth: ['handle', 'buffer'],
  nvmlDeviceGetGpuFabricInfoV: ['handle', 'buffer'],
  nvmlDeviceGetGpuFabricInfo: ['handle', 'buffer'],

  nvmlDeviceGetComputeRunningProcesses_v3: ['handle', 'buffer', 'buffer'],
  nvmlDeviceGetComputeRunningProcesses_v2: ['handle', 'buffer', 'buffer'],
  nvmlDeviceGetComputeRunningProcesses: ['handle', 'buffer', 'buffer'],
  nvmlDeviceGetGraphicsRunningProcesses_v3: ['handle', 'buffer', 'buffer'],
  nvmlDeviceGetGraphicsRunningProcesses_v2: ['handle', 'buffer', 'buffer'],
  nvmlDeviceGetGraphicsRunningProcesses: ['handle', 'buffer', 'buffer'],
  nvmlDeviceGetProcessUtilization: ['handle', 'buffer', 'buffer', 'uint64'],

  nvmlDeviceGetMigMode: ['handle', 'buffer', 'buffer'],
  nvmlDeviceGetMaxMigDeviceCount: ['handle', 'buffer'],
  nvmlDeviceGetMigDeviceHandleByIndex: ['handle', 'uint', 'buffer'],
  nvmlDeviceGetGpuInstanceId: ['handle', 'buffer'],
  nvmlDeviceGetComputeInstanceId: ['handle', 'buffer'],
  nvmlDeviceGetAttributes_v2: ['handle', 'buffer'],

  nvmlGpmQueryDeviceSupport: ['handle', 'buffer'],
  nvmlGpmSampleAlloc: ['buffer'],
  nvmlGpmSampleFree: ['handle'],
  nvmlGpmSampleGet: ['handle', 'handle'],
  nvmlGpmMigSampleGet: ['handle', 'uint', 'handle'],
  nvmlGpmMetricsGet: ['buffer'],

  nvmlEventSetCreate: ['buffer'],
  nvmlEventSetFree: ['handle'],
  nvmlDeviceGetSupportedEventTypes: ['handle', 'buffer'],
  nvmlDeviceRegisterEvents: ['handle', 'uint64', 'handle'],
  nvmlEventSetWait_v2: ['handle', 'buffer', 'uint'],
  nvmlEventSetWait: ['handle', 'buffer', 'uint'],
} as const satisfies Readonly<Record<string, readonly Parameter[]>>

export type SymbolName = keyof typeof SYMBOLS
