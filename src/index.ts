export { Failure } from './core/failure.ts'
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
} from './core/model.ts'
export { VERSION } from './core/version.ts'
export { FragmentationAnalyzer, type FragmentationAnalyzerOptions } from './library/fragmentation-analyzer.ts'
export { GPUMonitor, type GPUMonitorEvents, type GPUMonitorOptions, type MonitorSample } from './library/gpu-monitor.ts'
export { LeakDetector, type LeakDetectorOptions } from './library/leak-detector.ts'
export { MemoryDebugger, type MemoryDebuggerOptions, type MemoryDebuggerReport } from './library/memory-debugger.ts'
export { MemoryProfiler, type MemoryProfilerOptions } from './library/memory-profiler.ts'
export type { MemoryToolOptions } from './library/memory-tool.ts'
export { OOMDetector, type OOMDetectorOptions } from './library/oom-detector.ts'
export {
  analyzeSnapshot,
  type SnapshotAnalysisOptions,
  type SnapshotDevice,
  type SnapshotFragmentation,
  type SnapshotLeak,
  type SnapshotOutOfMemory,
  type SnapshotReport,
} from './library/snapshot-analysis.ts'
export type { DeviceLedger, FragmentationFigures, RunFragmentation } from './report/fragmentation-report.ts'
export type { LeakAnswer, LeakVerdict } from './report/leak-verdicts.ts'
export type { MemoryProfileReport, ProfiledDevice } from './report/memory-profile.ts'
export type { OomPrediction } from './report/oom-assessment.ts'
export { type StepFigures, TrainingMonitorCallback, type TrainingMonitorCallbackOptions } from './training/training-callback.ts'
