/** Which GPU a name or a finding means. */
import type { Finding, FindingSubject, GpuInfo, Run } from '../model.ts'

export type GpuNames = Pick<GpuInfo, 'id' | 'label' | 'index'> & Partial<Pick<GpuInfo, 'provenance'>>

/** A GPU is named by its label, its index or its id. */
export function namesGpu({ id, label, index }: GpuNames, name: string): boolean {
  return id === name || label === name || String(index) === name
}

/** Whether a run that names its GPU so means this one. A real run may say `0` where GPU 0 is simulated; a simulated run says the id. */
export function isGpuOfRun(gpu: GpuNames, name: string): boolean {
  return gpu.provenance === 'simulated' ? gpu.id === name : namesGpu(gpu, name)
}

type Runs = ReadonlyMap<string, Pick<Run, 'gpus'>>

/** Whether a finding is about this GPU: by its id, its index, or through a run on it. */
export function isAboutGpu(subject: FindingSubject, gpu: GpuNames & Pick<GpuInfo, 'mig'>, runs: Runs): boolean {
  if (subject.gpu !== null) return subject.gpu === gpu.id
  if (subject.gpuIndex !== null) return subject.gpuIndex === gpu.index && gpu.mig === null
  const named = subject.run === null ? undefined : runs.get(subject.run)?.gpus
  return named?.some((name) => isGpuOfRun(gpu, name)) ?? false
}

const RISK_ORDER = { critical: 0, high: 1, medium: 2, low: 3 } as const

/** The most urgent forecast for this GPU, of the device or of a run on it. */
export function forecastOf(gpu: GpuNames & Pick<GpuInfo, 'mig'>, findings: readonly Finding[], runs: Runs): Finding | null {
  const risk = ({ riskLevel }: Finding) => RISK_ORDER[riskLevel ?? 'low']
  const own = findings.filter(({ detector, subject }) => detector === 'oom' && isAboutGpu(subject, gpu, runs))
  return own.sort((a, b) => risk(a) - risk(b) || (a.predictedAt ?? 0) - (b.predictedAt ?? 0))[0] ?? null
}
