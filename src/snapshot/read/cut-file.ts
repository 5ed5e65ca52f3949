/** A file that ends before its STOP: what was begun is closed with what it has so far, up to the last whole record. */
import type { PickleBuilder } from './pickle-builder.ts'
import { DICT, FRAME, isList, isRun, KIND_MASK, LIST, TRACE } from './tokens.ts'
import type { ValueStack } from './value-stack.ts'

export function closeOpen(stack: ValueStack, builder: PickleBuilder): void {
  const kindAt = (at: number) => (at < 0 ? -1 : (stack.tokens[at] as number) & KIND_MASK)
  for (;;) {
    appendLast(stack, builder, kindAt)
    if (stack.markCount === 0) return
    const from = stack.popMark(0, 0)
    const container = from - 1
    if (kindAt(container) === DICT) {
      // A record that was cut is none; the top-level dict is the one whose half is worth having.
      if (builder.isTopLevel(from, stack.top)) builder.fillDict(container, from, from + 2 * Math.floor((stack.top - from) / 2))
      else stack.top = Math.max(0, container)
      stack.top = Math.min(stack.top, from)
    } else if (isList(kindAt(container))) {
      let to = stack.top
      while (to > from && kindAt(to - 1) === DICT) to--
      builder.fillList(container, from, to)
      stack.top = from
    } else stack.top = from
  }
}

/** A list of one item is written without a MARK: its item may still wait beside it. A trace beside an empty list is one of two devices, unless a dict holds them. */
function appendLast(stack: ValueStack, builder: PickleBuilder, kindAt: (at: number) => number): void {
  while (stack.top - 2 >= stack.floor) {
    const item = kindAt(stack.top - 1)
    if (item === DICT) stack.top--
    else {
      const isInDict = kindAt(stack.floor - 1) === DICT
      if (kindAt(stack.top - 2) !== LIST || !(isRun(item) || item === FRAME || (item === TRACE && isInDict))) return
      builder.fillList(stack.top - 2, stack.top - 1, stack.top)
      stack.top--
    }
  }
}
