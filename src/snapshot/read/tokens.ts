/**
 * A value of the file as one integer: its kind in the low bits, an id above them. Values are never made into objects, so that
 * millions of them cost four bytes each. A run is several records that were made one after the other: the id is the first of
 * them, and the number beside the token how many.
 */
export const KIND_BITS = 5
export const KIND_MASK = 31

export const OTHER = 0
export const TEXT = 1
/** The value is the number beside the token. */
export const NUMBER = 2
export const BOOL = 3
/** Not filled yet. */
export const DICT = 4
/** Not filled yet, or empty. */
export const LIST = 5
export const FRAME = 6
/** A list of frames. */
export const STACK = 7
/** Runs. */
export const EVENTS = 8
export const BLOCKS = 9
export const SEGMENTS = 10
export const ANNOTATIONS = 11
/** Two integers: the id of a pool. */
export const PAIR = 12
/** A list of events, as a run. */
export const TRACE = 13
/** A list of traces. */
export const TRACES = 14
/** A dict of plain values, such as settings. */
export const RECORD = 15
/** What old files keep of a block's past. */
export const HISTORY = 16
/** The whole snapshot. */
export const TOP = 17

/** Ids are below this. */
export const MOST_IDS = 2 ** (32 - KIND_BITS - 1)

export function token(kind: number, id: number): number {
  return (id << KIND_BITS) | kind
}

export function isRun(kind: number): boolean {
  return kind >= EVENTS && kind <= ANNOTATIONS
}

/** Of what a list may have become. */
export function isList(kind: number): boolean {
  return kind === LIST || kind === OTHER || kind === STACK || (kind >= BLOCKS && kind <= TRACES && kind !== PAIR) || kind === HISTORY
}
