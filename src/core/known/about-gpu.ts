/** Which GPU is meant, what it is called, and what is said of it. */
import type { Finding, FindingSubject, GpuInfo, Run } from '../model.ts'

export type GpuNames = Pick<GpuInfo, 'id' | 'label' | 'index'>

/** People and training code name a GPU by its label, its number or its identity. */
export function namesGpu({ id, label, index }: GpuNames, name: string): boolean {
  return id === name || label === name || String(index) === name
}

/** `NVIDIA H100 80GB HBM3` → `H100 80GB HBM3`: the vendor is the least of it. */
export function gpuName({ name }: Pick<GpuInfo, 'name'>): string {
  return (name ?? 'unknown GPU').replace(/^(NVIDIA|AMD) (GeForce |Radeon |Instinct )?/, '')
}

/** Whether a finding is about this GPU: by its identity, by the rank's place, or through the run that is on it. */
export function isAboutGpu(
  subject: FindingSubject,
  gpu: GpuNames & Pick<GpuInfo, 'mig'>,
  runOf: (id: string) => Pick<Run, 'gpus'> | null | undefined,
): boolean {
  if (subject.gpu !== null) return subject.gpu === gpu.id
  if (subject.gpuIndex !== null) return subject.gpuIndex === gpu.index && gpu.mig === null
  const named = subject.run === null ? null : runOf(subject.run)
  return named?.gpus.some((name) => namesGpu(gpu, name)) ?? false
}

const RISK_ORDER = { critical: 0, high: 1, medium: 2, low: 3 } as const

/** The most pressing forecast that memory runs out among these findings; null when none of them is one. */
export function mostPressing(findings: readonly Finding[]): Finding | null {
  const risk = ({ riskLevel }: Finding) => RISK_ORDER[riskLevel ?? 'low']
  const soon = ({ predictedAt }: Finding) => predictedAt ?? 0
  const forecasts = findings.filter(({ detector }) => detector === 'oom')
  return forecasts.sort((a, b) => risk(a) - risk(b) || soon(a) - soon(b))[0] ?? null
}
