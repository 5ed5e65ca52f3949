import type { FindingSubject, GpuInfo, Run } from '../../../../src/core/model.ts'
import { namesGpu } from '../../run-gpu.ts'

/** Whether a finding is about this GPU: by its identity, by the rank's place, or through the run that is on it. */
export function isAboutGpu(
  subject: FindingSubject,
  { id, label, index, mig }: Pick<GpuInfo, 'id' | 'label' | 'index' | 'mig'>,
  runs: ReadonlyMap<string, Run>,
): boolean {
  if (subject.gpu !== null) return subject.gpu === id
  if (subject.gpuIndex !== null) return subject.gpuIndex === index && mig === null
  const gpus = subject.run === null ? undefined : runs.get(subject.run)?.gpus
  return gpus?.some((name) => namesGpu({ id, label, index }, name)) ?? false
}
