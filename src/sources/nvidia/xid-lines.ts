/** XIDs from the kernel's log: NVML misses 79, 119, 120 on some drivers. */
import type { KernelLines } from '../kernel-log.ts'
import { normalizeBusId } from './layouts.ts'

export interface KernelXid {
  /** `00000000:3B:00.0` */
  readonly pciBusId: string | null
  readonly code: number
  /** What the kernel's line says after the number. */
  readonly detail: string
}

const LINE = /NVRM: Xid \(PCI:([0-9a-fA-F:.]+)[^)]*\): (\d+)(?:,\s*(.*))?/
const MAX_DETAIL = 200

export const XID_LINES: KernelLines<KernelXid> = {
  mark: 'NVRM: Xid',
  parse: parseXidLine,
  without: 'XIDs come from the driver only',
}

/** null: a line about something else. */
export function parseXidLine(line: string): KernelXid | null {
  const match = LINE.exec(line)
  if (!match) return null
  const [, address = '', code = '', detail = ''] = match
  return { pciBusId: normalizeBusId(address), code: Number(code), detail: detail.trim().slice(0, MAX_DETAIL) }
}
