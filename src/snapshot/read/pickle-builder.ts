/** What makes something of the filled dicts, lists and tuples of a pickle. Values are tokens on the stack; see tokens.ts. */
import type { Memo } from './memo.ts'
import type { TextTable } from './text-table.ts'

export interface PickleBuilder {
  readonly texts: TextTable
  /** Throws where the file made more of something than its bytes allow. */
  check(offset: number): void
  /** What the dict at `at` becomes with the keys and values in [from, to); its place on the stack gets the token. */
  fillDict(at: number, from: number, to: number): void
  /** What the list at `at` becomes with the items in [from, to) added to it. */
  fillList(at: number, from: number, to: number): void
  tuple(at: number, from: number, to: number): void
  /** Whether a dict that the end of the file cut is of use. */
  isTopLevel(from: number, to: number): boolean
  shortcut(memo: Memo): ListShortcut
}

/** Recognizes lists by their bytes. */
export interface ListShortcut {
  /** Where the list that was recognized ends. */
  readonly end: number
  /** -1: it has to be taken apart. */
  recognize(buffer: Uint8Array, from: number, limit: number): number
}
