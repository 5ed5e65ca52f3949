/** The stacks of a run's ranks, asked for when somebody wants to see them. A part of its own: most people never do. */
import { useEffect, useState } from 'preact/hooks'
import type { RankStacks } from '../../../../src/core/hang/rank-stacks.ts'
import { stacksText } from '../../../../src/core/hang/stacks-text.ts'
import { ask, inWords } from '../../api.ts'
import { present } from '../../live/present.ts'
import { Fault, ScrollBox } from '../../parts/parts.tsx'
import { clockTime } from '../../words.ts'
import { runPath } from './use-run.ts'

interface StacksAnswer {
  readonly at: number
  readonly isOver: boolean
  readonly ranks: readonly RankStacks[]
}

const LOOK_MS = 500
const MOST_LOOKS = 12

/** `hasSome`: those of the last stall are kept, and are shown first. */
export function Stacks({ id, hasSome, isRunning }: { readonly id: string; readonly hasSome: boolean; readonly isRunning: boolean }) {
  const [answer, setAnswer] = useState<StacksAnswer | null>(null)
  const [fault, setFault] = useState<string | null>(null)
  const [turn, setTurn] = useState(hasSome || !isRunning ? 0 : 1)
  const [isBusy, setBusy] = useState(true)
  useEffect(() => {
    let isGone = false
    setBusy(true)
    setFault(null)
    look(id, turn > 0)
      .then((got) => !isGone && setAnswer(got))
      .catch((error: unknown) => !isGone && setFault(inWords(error)))
      .finally(() => !isGone && setBusy(false))
    return () => {
      isGone = true
    }
  }, [id, turn])
  return (
    <>
      <Fault text={fault} />
      <p class="small faint">
        {answer && `As of ${clockTime(answer.at, present())}. `}
        {isRunning && (
          <button type="button" disabled={isBusy} onClick={() => setTurn(turn + 1)}>
            {isBusy ? 'Asking the ranks…' : 'Ask again'}
          </button>
        )}
      </p>
      {answer && (
        <ScrollBox label="Stacks">
          <pre class="small">{answer.ranks.length === 0 ? 'Nobody answered.' : stacksText(answer.ranks, true).join('\n')}</pre>
        </ScrollBox>
      )}
    </>
  )
}

async function look(id: string, isNew: boolean): Promise<StacksAnswer> {
  const path = `${runPath(id)}/stacks`
  if (isNew) await ask(path, {}, { method: 'POST', body: {} })
  let got = await ask<StacksAnswer>(path)
  for (let count = 0; !got.isOver && count < MOST_LOOKS; count++) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    got = await ask<StacksAnswer>(path)
  }
  return got
}
