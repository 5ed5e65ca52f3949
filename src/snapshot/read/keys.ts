/** The texts of a snapshot that mean something, with fixed ids: they are the first ones of the text table. */

const KEY_NAMES = [
  'action',
  'addr',
  'size',
  'stream',
  'time_us',
  'frames',
  'user_metadata',
  'pool_id',
  'device_free',
  'name',
  'filename',
  'line',
  'device',
  'address',
  'total_size',
  'requested_size',
  'segment_type',
  'segment_pool_id',
  'is_expandable',
  'blocks',
  'state',
  'history',
  'real_size',
  'stage',
  'segments',
  'device_traces',
  'allocator_settings',
  'external_annotations',
  'host_segments',
  'host_traces',
] as const

type KeyName = (typeof KEY_NAMES)[number]

/** Key → its id. */
export const KEY = Object.fromEntries(KEY_NAMES.map((name, id) => [name, id])) as Readonly<Record<KeyName, number>>
export const KEY_COUNT = KEY_NAMES.length

/** The order gives each its code, kept in one byte an event; an action of a version to come is `other`. */
export const ACTIONS = [
  'other',
  'alloc',
  'free_requested',
  'free_completed',
  'segment_alloc',
  'segment_free',
  'segment_map',
  'segment_unmap',
  'oom',
  'snapshot',
] as const

export const ACTION = Object.fromEntries(ACTIONS.map((name, code) => [name, code])) as Readonly<Record<(typeof ACTIONS)[number], number>>

const STATES = ['inactive', 'active_allocated', 'active_pending_free', 'active_awaiting_free'] as const

export const FIRST_TEXTS: readonly string[] = [...KEY_NAMES, ...ACTIONS, ...STATES, 'small', 'large', 'START', 'END', '']

export const TEXT_SMALL = FIRST_TEXTS.indexOf('small')
export const TEXT_START = FIRST_TEXTS.indexOf('START')
export const TEXT_EMPTY = FIRST_TEXTS.indexOf('')

/** By the id of its text. */
export function actionCode(text: number): number {
  const code = text - KEY_COUNT
  return code > 0 && code < ACTIONS.length ? code : 0
}

/** Codes of a block's state. */
export const INACTIVE = 0
export const ALLOCATED = 1
export const PENDING = 2

export function stateCode(text: number): number {
  const code = text - KEY_COUNT - ACTIONS.length
  return code === 1 ? ALLOCATED : code === 2 || code === 3 ? PENDING : INACTIVE
}
