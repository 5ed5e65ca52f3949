/** The public library API. */
export { Failure } from './failure.ts'
export { FragmentationAnalyzer, type FragmentationAnalyzerOptions } from './fragmentation-analyzer.ts'
export { GPUMonitor, type GPUMonitorEvents, type GPUMonitorOptions, type MonitorSample } from './gpu-monitor.ts'
export { LeakDetector, type LeakDetectorOptions } from './leak-detector.ts'
export { MemoryDebugger, type MemoryDebuggerOptions, type MemoryDebuggerReport } from './memory-debugger.ts'
export { MemoryProfiler, type MemoryProfilerOptions } from './memory-profiler.ts'
export type { MemoryToolOptions } from './memory-tool.ts'
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
export { OOMDetector, type OOMDetectorOptions } from './oom-detector.ts'
export type { DeviceLedger, FragmentationFigures, RunFragmentation } from './report/fragmentation-report.ts'
export type { LeakAnswer, LeakVerdict } from './report/leak-verdicts.ts'
export type { MemoryProfileReport, ProfiledDevice } from './report/memory-profile.ts'
export type { OomPrediction } from './report/oom-assessment.ts'
export { type StepFigures, TrainingMonitorCallback, type TrainingMonitorCallbackOptions } from './training/training-callback.ts'
export { VERSION } from './version.ts'
