/** Which time and which GPU a list is asked for. */
import type { AgentState } from '../core/kinds.ts'
import type { Reply, RouteContext } from '../core/route.ts'
import { chooseRange, type TimeRange } from '../core/time-range.ts'
import { filterGpu } from './gpu-name.ts'

export interface Scope extends TimeRange {
  /** GpuInfo.id; null: all. */
  readonly gpu: string | null
}

type Asked = Readonly<Partial<Record<'from' | 'to' | 'gpu', string | undefined>>>

/** Without `from`: everything that is kept. */
export function chooseScope(context: RouteContext<Asked>, state: AgentState): Scope | Reply {
  const range = chooseRange(context, state.now(), Number.POSITIVE_INFINITY)
  if (!('from' in range)) return range
  const gpu = filterGpu(context, state.gpus())
  return typeof gpu === 'object' && gpu !== null ? gpu : { ...range, gpu }
}
