/** The public library API. */
export { Failure } from './failure.ts'
export { GPUMonitor, type GPUMonitorEvents, type GPUMonitorOptions, type MonitorSample } from './gpu-monitor.ts'
export type {
  Finding,
  GpuEvent,
  GpuField,
  GpuInfo,
  GpuProcess,
  GpuReadings,
  GpuSample,
  GpuState,
  HostSample,
  ProcessInfo,
  ProcessView,
  Reading,
  SourceHealth,
  TrainingStep,
} from './model.ts'
export { VERSION } from './version.ts'
