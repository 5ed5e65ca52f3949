import { useState } from 'preact/hooks'
import { ask, inWords } from '../../api.ts'
import { Badge, Empty, Fault, Panel, ScrollBox } from '../../parts/parts.tsx'
import { useAnswer } from '../../poll.ts'
import { formatAge } from '../../words.ts'

interface ChannelView {
  readonly channel: string
  readonly results: Readonly<Record<string, number>>
  readonly depth: number
  readonly oldestAgeMs: number | null
  readonly attempts: number
  readonly lastFault: string | null
  readonly problem: string | null
}

interface Tested {
  readonly ok: boolean
  readonly answer: string
  /** Nothing was sent, as nobody is there to hear it. */
  readonly idle: boolean
}

const REFRESH_MS = 10_000

/** Where alerts go, how deliveries went, and a test with the server's own answer. */
export function Channels() {
  const { answer, fault, again } = useAnswer<{ channels: readonly ChannelView[] }>('/api/v1/channels', {}, REFRESH_MS)
  return (
    <Panel title="Channels">
      <Fault text={fault} />
      {answer !== null && answer.channels.length === 0 && (
        <Empty title="No channel is configured">
          Alerts are shown here only. Set SMTP_SERVER, EMAIL_ADDRESS and TO_EMAILS for e-mail, or add a channel to the configuration: see
          docs/channels.md.
        </Empty>
      )}
      {answer !== null && answer.channels.length > 0 && (
        <ScrollBox label="Channels">
          <table>
            <thead>
              <tr>
                <th>Channel</th>
                <th class="number">Delivered</th>
                <th class="number">Refused</th>
                <th class="number">Waiting</th>
                <th>State</th>
                <th>
                  <span class="visually-hidden">Test</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {answer.channels.map((channel) => (
                <Channel key={channel.channel} channel={channel} onTested={again} />
              ))}
            </tbody>
          </table>
        </ScrollBox>
      )}
    </Panel>
  )
}

function Channel({ channel, onTested }: { readonly channel: ChannelView; readonly onTested: () => void }) {
  const [test, setTest] = useState<Tested | 'running' | null>(null)
  const run = () => {
    setTest('running')
    ask<Tested>(`/api/v1/channels/${encodeURIComponent(channel.channel)}/test`, {}, { method: 'POST' }).then(
      (answer) => {
        setTest(answer)
        onTested()
      },
      (error: unknown) => setTest({ ok: false, answer: inWords(error), idle: false }),
    )
  }
  const { results, depth, oldestAgeMs, problem, lastFault } = channel
  return (
    <tr>
      <td>{channel.channel}</td>
      <td class="number">{results.delivered ?? 0}</td>
      <td class="number">{(results.refused ?? 0) + (results.expired ?? 0)}</td>
      <td class="number">
        {depth}
        {oldestAgeMs !== null && <span class="faint"> ({formatAge(oldestAgeMs)})</span>}
      </td>
      <td class="channel-state">
        {problem !== null && channel.channel === 'webpush' ? (
          <Badge tone="muted">not used</Badge>
        ) : channel.attempts > 0 ? (
          <Badge tone="warning">trying again</Badge>
        ) : problem !== null ? (
          <Badge tone="critical">not usable</Badge>
        ) : (
          <Badge tone="good">ready</Badge>
        )}{' '}
        <span class="small faint">{problem ?? lastFault ?? ''}</span>
        {test !== null && test !== 'running' && (
          <p class={`small ${test.ok ? 'tone-good' : 'tone-critical'}`} role="status">
            {test.ok ? 'Delivered' : test.idle ? 'Nothing to deliver to' : 'Not delivered'}: {test.answer}
          </p>
        )}
      </td>
      <td class="number">
        <button type="button" disabled={test === 'running'} onClick={run}>
          {test === 'running' ? 'Sending…' : 'Send a test'}
        </button>
      </td>
    </tr>
  )
}
