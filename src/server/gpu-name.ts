/** Which GPU a request means. */
import { z } from 'zod'
import type { GpuView } from '../core/kinds.ts'
import type { Reply, RouteContext } from '../core/route.ts'

export const GPU_PARAMETER = z.string().optional().describe('Label, index or id of a GPU; may be left out when there is only one')
export const GPU_FILTER = z.string().optional().describe('Only of this GPU, by label, index or id')

/** By label first: `0` is GPU 0 and not its MIG instances, which have the same index. */
export function findGpu(gpus: readonly GpuView[], name: string): GpuView | undefined {
  return (
    gpus.find(({ info }) => info.label === name) ??
    gpus.find(({ info }) => info.id === name) ??
    gpus.find(({ info }) => String(info.index) === name)
  )
}

export function knownGpus(gpus: readonly GpuView[]): string {
  return gpus.length === 0 ? 'No GPU is known yet; see /api/v1/health.' : `There are: ${gpus.map(({ info }) => info.label).join(', ')}.`
}

interface Asked {
  readonly gpu?: string | undefined
}

/** The id of the GPU; the only one when none is named. */
export function chooseGpu(context: RouteContext<Asked>, gpus: readonly GpuView[]): string | Reply {
  const [only, another] = gpus
  if (context.query.gpu !== undefined || !only || another)
    return filterGpu(context, gpus) ?? context.refuse('missing_parameter', 'The parameter "gpu" is missing.', knownGpus(gpus))
  return only.info.id
}

/** The id of the named GPU; null when none is named. */
export function filterGpu({ query: { gpu }, refuse }: RouteContext<Asked>, gpus: readonly GpuView[]): string | Reply | null {
  if (gpu === undefined) return null
  const found = findGpu(gpus, gpu)
  return found
    ? found.info.id
    : refuse('invalid_gpu', `No GPU has the label, index or id ${JSON.stringify(gpu.slice(0, 60))}.`, knownGpus(gpus))
}
