/** What a key leads to: what the screen shows next, and what is to be done. */
import type { Finding } from '../core/model.ts'
import type { SignalName } from '../core/process-control.ts'
import type { ProcessRow } from './process-rows.ts'
import type { Frame } from './render.ts'
import type { KillQuestion, ScreenData, View } from './screen-data.ts'

export type Effect =
  | { readonly kind: 'quit' | 'suspend' | 'redraw' | 'save' | 'reset' | 'pause' | 'theme' | 'remember' | 'faster' | 'slower' }
  | { readonly kind: 'seek'; readonly deltaMs: number }
  | { readonly kind: 'ask-kill'; readonly row: ProcessRow }
  | { readonly kind: 'signal'; readonly question: KillQuestion; readonly signal: SignalName }
  | { readonly kind: 'details'; readonly row: ProcessRow }
  | { readonly kind: 'acknowledge' | 'silence' | 'stacks'; readonly finding: Finding }

export interface Outcome {
  readonly view: View
  readonly effect: Effect | null
}

export interface Surroundings {
  readonly data: ScreenData
  readonly frame: Frame
}
