/** What the program shows of each family of cards, from files to `status --json` and `/metrics`. UPDATE_GOLDEN=1 writes the golden files anew. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { MI300X_CPX, RX_7900_XTX } from '../src/sources/amd/trees.fixture.ts'
import { makeMachine, writeTree } from '../src/sources/drm/tree.fixture.ts'
import { ARC_B580, UHD_770 } from '../src/sources/intel/trees.fixture.ts'
import { RunningAgent, run, until } from './program.ts'

const GOLDEN = fileURLToPath(new URL('./golden/', import.meta.url))
/** Ages, counts of samples and what belongs to no card. */
const OF_A_CARD = /^(?:# (?:HELP|TYPE) )?(?:gpu_|gpuwarden_gpu_(?:up|state)|DCGM_)/

const FAMILIES = {
  'amd-rdna': RX_7900_XTX,
  'amd-cdna-partitions': MI300X_CPX,
  'intel-arc-xe': ARC_B580,
  'intel-integrated-i915': UHD_770,
} as const

function mustBeGolden(name: string, text: string): void {
  const path = join(GOLDEN, name)
  if (process.env.UPDATE_GOLDEN === '1') writeFileSync(path, text)
  expect(existsSync(path) ? readFileSync(path, 'utf8') : null).toBe(text)
}

interface Health {
  readonly sources: readonly { readonly samples: number }[]
}

describe.each(Object.entries(FAMILIES))('%s', (family, tree) => {
  const env = { GPUWARDEN_ROOT: '' }
  beforeAll(() => {
    const { root, remove } = makeMachine(tree)
    env.GPUWARDEN_ROOT = root
    return remove
  })

  it('has the status that it should', async () => {
    const { code, stdout, stderr } = await run(['status', '--json', '--port', '1'], env)
    expect([code, stderr]).toEqual([0, ''])
    const { timestamp, ...report } = JSON.parse(stdout)
    expect(Date.parse(timestamp)).toBeGreaterThan(0)
    mustBeGolden(`${family}.status.json`, `${JSON.stringify(report, null, 2)}\n`)
  })

  it('has the metrics that it should', async () => {
    const agent = await RunningAgent.start(['--interval', '0.1', '--metrics', 'native,dcgm,nvidia_smi'], env)
    try {
      await until('it has read twice', async () => {
        const { sources } = await agent.get<Health>('/api/v1/health')
        return sources.length > 0 && sources.every(({ samples }) => samples >= 3)
      })
      const lines = (await agent.text('/metrics')).split('\n').filter((line) => OF_A_CARD.test(line))
      const shared = lines.map((line) => line.replace(/Hostname="[^"]*"/, 'Hostname="box"'))
      mustBeGolden(`${family}.metrics.txt`, `${shared.join('\n')}\n`)
      const names = new Set(shared.flatMap((line) => /^DCGM_\w+/.exec(line)?.[0] ?? []))
      expect([...names].filter((name) => /XID|NVLINK|BAR1|REMAP|VIOLATION|THROTTLE|ECC|PROF/.test(name))).toEqual([])
      expect(shared.join('\n')).not.toMatch(/nvidia|DCGM_FI_DEV_XID/i)
    } finally {
      await agent.stop()
    }
  })
})

describe('a machine with cards of several vendors', () => {
  it('shows them all in one run', async () => {
    const { root, remove } = makeMachine({
      cards: [...UHD_770.cards, ...RX_7900_XTX.cards, ...ARC_B580.cards.map((card) => ({ ...card, minor: 5, address: '0000:0a:00.0' }))],
    })
    try {
      writeTree(root, UHD_770.other ?? {})
      const { code, stdout } = await run(['status', '--port', '1'], { GPUWARDEN_ROOT: root })
      expect(code).toBe(0)
      for (const name of ['AMD Radeon RX 7900 XTX', 'Intel UHD Graphics 770', 'Intel Arc B580']) expect(stdout).toContain(name)
      expect(stdout.split('\n').filter((line) => /^\d+ .* ok /.test(line))).toHaveLength(3)
    } finally {
      remove()
    }
  })
})
