/** systemd's own judgement of the unit. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { type UnitOptions, unitText } from '../../src/service/unit.ts'
import { VENDORS } from '../../src/sources/vendors.ts'
import { temporaryFolder } from '../program.ts'
import { whyMissing } from './servers.ts'

const SERVICE_DOC = fileURLToPath(new URL('../../docs/service.md', import.meta.url))
const PLACES = {
  command: [process.execPath, fileURLToPath(new URL('../../bin/gpuwarden.js', import.meta.url))],
  runAs: null,
  config: null,
  drivers: VENDORS.map(({ unit }) => unit),
}

function unitFile(options: UnitOptions): string {
  const file = join(temporaryFolder(), 'gpuwarden.service')
  writeFileSync(file, unitText(options))
  return file
}

const missing = whyMissing('systemd-analyze')

describe.skipIf(missing !== '')(`the systemd unit${missing}`, () => {
  it.each(['system', 'user'] as const)('is taken by systemd: %s', (scope) => {
    const args = ['verify', ...(scope === 'user' ? ['--user'] : []), '--man=no', unitFile({ ...PLACES, scope })]
    const { status, stdout, stderr } = spawnSync('systemd-analyze', args, { encoding: 'utf8' })
    const output = `${stdout}${stderr}`
    expect(output.split('\n').filter((line) => line.includes('gpuwarden'))).toEqual([])
    // A user manager cannot be asked where nobody is logged in; what it says of our unit was looked at above.
    if (scope === 'system') expect(status, output).toBe(0)
  })

  it('would notice a line that systemd does not know', () => {
    const file = unitFile({ ...PLACES, scope: 'system' })
    writeFileSync(file, unitText({ ...PLACES, scope: 'system' }).replace('[Service]', '[Service]\nProtectEverything=yes'))
    const { stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' })
    expect(`${stdout}${stderr}`).toContain('ProtectEverything')
  })

  // A unit of a user is judged as if root ran it, with every capability; the figure is what is left where there are none to take away.
  it.each([
    ['system', 3],
    ['user', 6.5],
  ] as const)('of the %s is exposed less than %d, and the documentation says how much', (scope, limit) => {
    const args = ['security', '--offline=true', '--no-pager', unitFile({ ...PLACES, scope })]
    const { stdout, stderr } = spawnSync('systemd-analyze', args, { encoding: 'utf8' })
    const level = /Overall exposure level for gpuwarden\.service: ([\d.]+)/.exec(stdout)?.[1]
    expect(level, stderr).toBeDefined()
    expect(Number(level)).toBeLessThan(limit)
    if (spawnSync('systemd-analyze', ['--version'], { encoding: 'utf8' }).stdout.startsWith('systemd 252 '))
      expect(readFileSync(SERVICE_DOC, 'utf8')).toMatch(new RegExp(`\\| ${scope} +\\| ${level} +\\|`))
  })
})
