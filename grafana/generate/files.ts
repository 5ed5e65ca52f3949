/** Every dashboard, by the name of its file below grafana/dashboards/. */
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard'
import { fleetBoard } from './fleet-board.ts'
import { memoryBoard } from './memory-board.ts'
import { trainingBoard } from './training-board.ts'
import { wasteBoard } from './waste-board.ts'

export const DASHBOARDS: Readonly<Record<string, Dashboard>> = {
  'gpu-training-dashboard.json': trainingBoard,
  'gpu-fleet-dashboard.json': fleetBoard,
  'gpu-memory-dashboard.json': memoryBoard,
  'gpu-waste-dashboard.json': wasteBoard,
}

/** A list of plain values on one line, as our formatter wants it. */
const PLAIN_LIST = /\[\n\s+((?:"[^"\\\n]*"|[-\d.e]+|null|true|false)(?:,\n\s+(?:"[^"\\\n]*"|[-\d.e]+|null|true|false))*)\n\s+\]/g

export function dashboardFiles(): ReadonlyMap<string, string> {
  return new Map(Object.entries(DASHBOARDS).map(([name, dashboard]) => [name, `${print(dashboard)}\n`]))
}

function print(dashboard: Dashboard): string {
  return JSON.stringify(dashboard, null, 2).replace(PLAIN_LIST, (_, values: string) => `[${values.replace(/,\n\s+/g, ', ')}]`)
}
