// Run by alert-decision.test.ts: decides on alerts while the disk is slow, and is killed in the same moment.
// Arguments: folder, settings as JSON, what to do.
import { createAlerts } from '../dist/alerts/alerts.js'
import { journalLane } from '../dist/core/disk-lane.js'

const [dir, settings, what] = process.argv.slice(2)
const quiet = () => undefined
const log = { debug: quiet, info: quiet, warn: quiet, error: (_fields, message) => console.log(message), child: () => log }
const none = () => []
const state = { hostname: 'box', gpus: none, processes: none, health: none, findings: none }
const channel = {
  name: 'mail',
  async deliver({ alerts: named }) {
    console.log(`sent ${named.map(({ fingerprint }) => fingerprint)}`)
    return { ok: true, answer: 'ok' }
  },
}
const alerts = createAlerts({
  dir,
  channels: new Map([['mail', channel]]),
  settings: JSON.parse(settings),
  state,
  log,
  now: Date.now,
  sweepMs: 0,
})

function tell(fingerprint, findingState = 'active') {
  const at = Date.now()
  const subject = { host: 'box', gpu: null, gpuIndex: null, pid: null, user: null, run: null, rank: null }
  const rest = {
    evidence: {},
    confidence: 1,
    advice: [],
    predictedAt: null,
    predictedEarliestAt: null,
    predictedLatestAt: null,
    riskLevel: null,
  }
  const told = {
    fingerprint,
    detector: 'xid',
    provenance: 'live',
    subject,
    severity: 'critical',
    state: findingState,
    message: fingerprint,
  }
  alerts.accept({ type: 'finding', finding: { ...told, at, since: at, ...rest } })
}

await alerts.flush()
for (const name of ['before', 'ends']) tell(name)
await alerts.flush()
if (what === 'list') {
  await alerts.sweep()
  console.log(JSON.stringify(alerts.list().map(({ fingerprint, state: phase }) => `${fingerprint} ${phase}`)))
  await alerts.close()
} else {
  // Nothing more reaches the file: as when the kill comes before the disk's turn.
  void journalLane.run(dir, () => new Promise(() => undefined))
  if (what === 'die of a full disk') {
    while (alerts.health().fault === null) await new Promise((resolve) => setTimeout(resolve, 100))
    for (let i = 0; i < 5000; i++) tell('flood', i % 2 ? 'resolved' : 'active')
  }
  tell('once')
  tell('ends', 'resolved')
  if (what === 'die of a full disk') await alerts.sweep()
  process.kill(process.pid, 'SIGKILL')
}
