// Run by alerts-killed.test.ts, to be killed: raises and clears alerts as fast as it can, and says which of them are on disk.
// Arguments: folder, URL that counts, number of this run, `raise` or `drain`, settings as JSON.
import { writeSync } from 'node:fs'
import { createAlerts } from '../../dist/alerts/alerts.js'

const [dir, url, run, mode, settings] = process.argv.slice(2)
/** Where nobody kills it in time, as many as a message can name (50) must not come together: those beyond are only counted. */
const MOST_RAISED = 10
const say = (line) => writeSync(1, `${line}\n`)

const channel = {
  name: 'http',
  async deliver(message, signal) {
    const alerts = message.alerts.map(({ fingerprint, status }) => ({ fingerprint, status }))
    const body = JSON.stringify({ run: Number(run), id: message.id, alerts })
    const answer = await fetch(url, { method: 'POST', body, signal })
    return answer.ok ? { ok: true, answer: String(answer.status) } : { ok: false, retry: true, reason: String(answer.status) }
  },
}
const quiet = () => undefined
const log = { debug: quiet, info: quiet, warn: quiet, error: (_fields, message) => say(`fault ${message}`), child: () => log }
const none = () => []
const state = { hostname: 'box', gpus: none, processes: none, health: none, findings: none }

function finding(fingerprint, findingState) {
  const at = Date.now()
  const subject = { host: 'box', gpu: null, gpuIndex: null, pid: null, user: null, run: null, rank: null }
  const rest = { evidence: {}, confidence: 1, advice: [], predictedAt: null, predictedEarliestAt: null, predictedLatestAt: null }
  const what = {
    fingerprint,
    detector: 'test',
    provenance: 'live',
    subject,
    severity: 'warning',
    state: findingState,
    message: fingerprint,
  }
  return { type: 'finding', finding: { ...what, at, since: at, riskLevel: null, ...rest } }
}

const channels = new Map([['http', channel]])
const alerts = createAlerts({ dir, channels, settings: JSON.parse(settings), state, log, now: Date.now, sweepMs: 2 })
say('ready')
// Detectors see after a restart what they saw before; that is no news. What lasted for a moment they never see again.
for (const alert of alerts.list())
  if (alert.state === 'firing' && !alert.fingerprint.startsWith('once')) alerts.accept(finding(alert.fingerprint, 'active'))

if (mode === 'drain') {
  while (alerts.health().spoolDepth > 0) await new Promise((resolve) => setTimeout(resolve, 5))
  await alerts.close()
  say('drained')
} else
  for (let number = 0; number < MOST_RAISED; number++) {
    const name = `${run}-${number}`
    alerts.accept(finding(name, 'active'))
    if (await alerts.flush()) say(`raised ${name}`)
    if (number % 2 === 1) {
      const old = `${run}-${number - 1}`
      alerts.accept(finding(old, 'resolved'))
      if (await alerts.flush()) say(`cleared ${old}`)
    }
    // Said once and never again: as a fault that the driver reports a single time.
    const once = `once-${name}`
    alerts.accept(finding(once, 'active'))
    if (number % 3 === 2) alerts.accept(finding(once, 'resolved'))
    // Nobody waits for the disk, and no kill may lose it.
    say(`seen ${once}`)
    await new Promise((resolve) => setTimeout(resolve, 3))
  }
// The one who kills has what it waits for; it may only be late.
if (mode === 'raise') await new Promise((resolve) => setTimeout(resolve, 60_000))
