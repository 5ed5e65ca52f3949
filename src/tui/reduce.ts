/** A key and what is on the screen → what the screen shows next, and what is to be done. Pure. */
import type { Finding } from '../core/model.ts'
import { alertRows, chosenAlert } from './alert-rows.ts'
import type { Key } from './keys.ts'
import type { Outcome, Surroundings } from './outcome.ts'
import type { Action } from './painter.ts'
import type { ProcessRow } from './process-rows.ts'
import { chooseAlert, reduceOverlay } from './reduce-overlay.ts'
import { FOCUSABLE, type Panel, type ScreenData, SORTS, type Sort, type View } from './screen-data.ts'

const SEEK_MS = 10_000

export function reduce(before: View, key: Key, around: Surroundings): Outcome {
  const view = before.message ? { ...before, message: null } : before
  if (key.type === 'key' && key.name === 'ctrl-c') return { view, effect: { kind: 'quit' } }
  if (key.type === 'key' && key.name === 'ctrl-z') return { view, effect: { kind: 'suspend' } }
  if (key.type === 'click') return clicked(view, key.x, key.y, around)
  if (key.type === 'wheel') return wheel(view, key.x, key.y, key.up, around)
  if (view.isFiltering) return filterKey(view, key)
  const name = key.type === 'key' ? key.name : key.char
  if (view.overlay) return reduceOverlay(view, view.overlay, name, around)
  return mainKey(view, name, around)
}

const same = (view: View): Outcome => ({ view, effect: null })
const remember = (view: View): Outcome => ({ view, effect: { kind: 'remember' } })

function mainKey(view: View, name: string, around: Surroundings): Outcome {
  const { data } = around
  const isReplay = data.replay !== null
  switch (name) {
    case 'q':
    case 'Q':
    case 'f10':
      return { view, effect: { kind: 'quit' } }
    case '?':
    case 'h':
    case 'f1':
      return same({ ...view, overlay: { kind: 'help', offset: 0 } })
    case '/':
      return same({ ...view, isFiltering: true, focus: 'processes' })
    case 'o':
    case 'f6':
      return same({ ...view, overlay: { kind: 'sort', selected: SORTS.indexOf(view.sort) } })
    case 'p':
    case 'f2':
      return same({ ...view, overlay: { kind: 'panels', selected: 0 } })
    case 'a':
      return same({ ...view, overlay: { kind: 'alerts', selected: 0, fingerprint: null } })
    case ',':
    case '<':
      return remember(sortBy(view, SORTS[(SORTS.indexOf(view.sort) + SORTS.length - 1) % SORTS.length] ?? 'gpu'))
    case '.':
    case '>':
      return remember(sortBy(view, SORTS[(SORTS.indexOf(view.sort) + 1) % SORTS.length] ?? 'gpu'))
    case 'i':
      return remember({ ...view, descending: !view.descending })
    case 't':
      return remember({ ...view, tree: !view.tree })
    case 'c':
      return remember({ ...view, layout: view.layout === 'auto' ? 'cards' : view.layout === 'cards' ? 'rows' : 'auto' })
    case 'T':
      return { view, effect: { kind: 'theme' } }
    case 's':
      return { view, effect: { kind: 'save' } }
    case 'r':
      return { view, effect: { kind: 'reset' } }
    case ' ':
      return { view, effect: { kind: 'pause' } }
    case 'f5':
    case 'ctrl-l':
      return { view, effect: { kind: 'redraw' } }
    case 'tab':
    case 'backtab':
      return same({ ...view, focus: nextPanel(view, data, name === 'tab' ? 1 : -1) })
    case 'escape':
      return same({ ...view, filter: '', gpu: null })
    case 'enter':
      return entered(view, around)
    case 'k':
    case 'f9':
      return askKill(view, around)
    case '[':
    case ']':
      return isReplay ? { view, effect: { kind: 'seek', deltaMs: name === '[' ? -SEEK_MS : SEEK_MS } } : same(view)
    case 'left':
    case 'right':
      if (isReplay) return { view, effect: { kind: 'seek', deltaMs: name === 'left' ? -SEEK_MS : SEEK_MS } }
      return same(move(view, view.focus, name === 'left' ? -1 : 1, around))
    case '+':
    case '=':
      return isReplay ? { view, effect: { kind: 'faster' } } : same(view)
    case '-':
      return isReplay ? { view, effect: { kind: 'slower' } } : same(view)
    default:
      return /^[0-9]$/.test(name) ? same(focusGpu(view, Number(name), data)) : same(moveBy(view, name, around))
  }
}

function moveBy(view: View, name: string, around: Surroundings): View {
  const page = around.frame.visible[view.focus]
  const steps: Readonly<Record<string, number>> = {
    up: -1,
    down: 1,
    pageup: -page,
    pagedown: page,
    home: Number.NEGATIVE_INFINITY,
    end: Number.POSITIVE_INFINITY,
  }
  const step = steps[name]
  return step === undefined ? view : move(view, view.focus, step, around)
}

function countOf(panel: Panel, { data, frame }: Surroundings): number {
  switch (panel) {
    case 'gpus':
      return data.gpus.length
    case 'processes':
      return frame.processes.length
    case 'training':
      return data.runs.length
    case 'findings':
      return data.findings.length
    case 'host':
      return 0
  }
}

function move(view: View, panel: Panel, step: number, around: Surroundings): View {
  const last = Math.max(0, countOf(panel, around) - 1)
  const { offset, selected } = around.frame.scroll[panel]
  const next = Math.max(0, Math.min(last, selected + step))
  const scroll = { ...view.scroll, [panel]: { offset, selected: next } }
  const process = panel === 'processes' ? (around.frame.processes[next]?.key ?? null) : view.process
  return { ...view, scroll, process }
}

function sortBy(view: View, sort: Sort): View {
  return { ...view, sort, descending: sort === view.sort ? !view.descending : false }
}

function focusGpu(view: View, number: number, data: ScreenData): View {
  const gpu = number === 0 ? null : (data.gpus[number - 1]?.view.info.id ?? null)
  if (gpu === null && number > 0) return { ...view, message: { text: `there are fewer than ${number} GPUs`, isTrouble: true } }
  return { ...view, gpu: gpu === view.gpu ? null : gpu }
}

/** Only panels that are shown and hold something take the keyboard. */
function nextPanel(view: View, data: ScreenData, step: number): Panel {
  const open = FOCUSABLE.filter(
    (panel) =>
      !view.hidden.has(panel) && (panel !== 'training' || data.runs.length > 0) && (panel !== 'findings' || data.findings.length > 0),
  )
  const index = open.indexOf(view.focus)
  return open[(index + step + open.length) % open.length] ?? 'processes'
}

function selectedRow({ frame }: Surroundings): ProcessRow | null {
  return frame.processes[frame.scroll.processes.selected] ?? null
}

function entered(view: View, around: Surroundings): Outcome {
  const { data, frame } = around
  if (view.focus === 'gpus') {
    const gpu = data.gpus[frame.scroll.gpus.selected]?.view.info.id ?? null
    return same({ ...view, gpu: view.gpu === gpu ? null : gpu })
  }
  if (view.focus === 'findings') return openFinding(view, data.findings[frame.scroll.findings.selected])
  if (view.focus === 'training') {
    const run = data.runs[frame.scroll.training.selected]
    if (run && run.ranks > 1 && run.stall === null && run.leak === null && run.oom === null)
      return same({ ...view, overlay: { kind: 'ranks', run: run.id, offset: 0 } })
    return openFinding(view, run?.stall ?? run?.leak ?? run?.oom ?? data.findings.find((finding) => finding.subject.run === run?.id))
  }
  const row = selectedRow(around)
  return row ? { view, effect: { kind: 'details', row } } : same(view)
}

function openFinding(view: View, finding: Finding | null | undefined): Outcome {
  if (!finding) return same(view)
  const opened: View = { ...view, overlay: { kind: 'finding', fingerprint: finding.fingerprint, offset: 0 } }
  return finding.detector === 'stall' && finding.subject.run !== null ? { view: opened, effect: { kind: 'stacks', finding } } : same(opened)
}

function askKill(view: View, around: Surroundings): Outcome {
  if (around.data.isReadonly) return same({ ...view, message: { text: 'this view is read-only (--readonly)', isTrouble: true } })
  const row = selectedRow(around)
  return row ? { view, effect: { kind: 'ask-kill', row } } : same({ ...view, message: { text: 'no process is selected', isTrouble: true } })
}

function filterKey(view: View, key: Key): Outcome {
  const scroll = { ...view.scroll, processes: { offset: 0, selected: 0 } }
  const typed = (filter: string): Outcome => same({ ...view, filter, scroll, process: null })
  if (key.type === 'char') return typed(view.filter + key.char)
  if (key.type !== 'key') return same(view)
  switch (key.name) {
    case 'enter':
    case 'tab':
      return same({ ...view, isFiltering: false })
    case 'escape':
      return same({ ...view, isFiltering: false, filter: '' })
    case 'backspace':
      return typed([...view.filter].slice(0, -1).join(''))
    case 'ctrl-u':
      return typed('')
    default:
      return same(view)
  }
}

function clicked(view: View, x: number, y: number, around: Surroundings): Outcome {
  // The last drawn lies on top.
  const hit = around.frame.hits.findLast((one) => x >= one.x && x < one.x + one.width && y >= one.y && y < one.y + one.height)
  if (!hit) return view.overlay && !['kill', 'silence'].includes(view.overlay.kind) ? same({ ...view, overlay: null }) : same(view)
  return act(view, hit.action, around)
}

function act(view: View, action: Action, around: Surroundings): Outcome {
  switch (action.kind) {
    case 'key':
      return reduce(view, action.key.length === 1 ? { type: 'char', char: action.key } : { type: 'key', name: action.key }, around)
    case 'sort':
      return remember(sortBy({ ...view, focus: 'processes' }, action.sort))
    case 'process':
      if (view.focus === 'processes' && view.process === action.key) return entered(view, around)
      return same({ ...view, focus: 'processes', process: action.key })
    case 'gpu': {
      const selected = around.data.gpus.findIndex((gpu) => gpu.view.info.id === action.id)
      const isAgain = view.focus === 'gpus' && view.scroll.gpus.selected === selected
      return same({
        ...view,
        focus: 'gpus',
        scroll: { ...view.scroll, gpus: { ...around.frame.scroll.gpus, selected } },
        gpu: isAgain && view.gpu === null ? action.id : view.gpu,
      })
    }
    case 'row': {
      const scroll = { ...view.scroll, [action.panel]: { ...around.frame.scroll[action.panel], selected: action.index } }
      const isAgain = view.focus === action.panel && view.scroll[action.panel].selected === action.index
      const next = { ...view, focus: action.panel, scroll }
      return isAgain ? entered(next, around) : same(next)
    }
    case 'panel':
      return same({ ...view, focus: action.panel })
    case 'choose':
      return chosen(view, action.index, around)
  }
}

/** In a menu one click does it. What has consequences, or is only pointed at, needs a second one on the same. */
function chosen(view: View, index: number, around: Surroundings): Outcome {
  const { overlay } = view
  if (!overlay || !('selected' in overlay)) return same(view)
  const isMenu = overlay.kind === 'sort' || overlay.kind === 'panels'
  const before = overlay.kind === 'alerts' ? chosenAlert(alertRows(around.data), overlay) : overlay.selected
  const pointed = overlay.kind === 'alerts' ? chooseAlert(overlay, index, around.data) : { ...overlay, selected: index }
  return isMenu || before === index ? reduceOverlay(view, pointed, 'enter', around) : same({ ...view, overlay: pointed })
}

function wheel(view: View, x: number, y: number, up: boolean, around: Surroundings): Outcome {
  if (view.overlay) return reduceOverlay(view, view.overlay, up ? 'up' : 'down', around)
  const panel = around.frame.panelAt(y, x)
  return panel === null || panel === 'host' ? same(view) : same(move({ ...view, focus: panel }, panel, up ? -1 : 1, around))
}
