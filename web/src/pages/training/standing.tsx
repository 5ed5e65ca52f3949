/** Who holds a run up, and the way to its stacks. */
import type { ComponentType } from 'preact'
import { useState } from 'preact/hooks'
import type { RunAnswer } from '../../answers.ts'
import { present } from '../../live/present.ts'
import { Panel } from '../../parts/parts.tsx'
import { clockTime } from '../../words.ts'

type Stacks = ComponentType<{ readonly id: string; readonly hasSome: boolean; readonly isRunning: boolean }>

export function Standing({ run }: { readonly run: RunAnswer }) {
  const [Part, setPart] = useState<Stacks | null>(null)
  const { id, hang, endedAt } = run
  const isRunning = endedAt === null
  if (!hang && !isRunning) return null
  const show = async () => {
    const { Stacks } = await import('./stacks.tsx')
    setPart(() => Stacks)
  }
  return (
    <Panel title="Stacks">
      {hang && (
        <p class="breakable">
          <strong>Stood still</strong> <span class="faint">at {clockTime(hang.at, present())}:</span> {hang.sentence}.
        </p>
      )}
      {Part ? (
        <Part id={id} hasSome={hang != null} isRunning={isRunning} />
      ) : (
        <button type="button" onClick={() => void show()}>
          Show where the ranks {isRunning ? 'are' : 'were'}
        </button>
      )}
    </Panel>
  )
}
