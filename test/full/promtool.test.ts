/** Prometheus' own tool on the rules and on the queries of the dashboards: their form, and each rule firing and staying quiet. */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { ALERTS } from '../../prometheus/generate/files.ts'
import { temporaryFolder } from '../program.ts'
import { filledIn, panelQueries } from '../promql.ts'
import { whyMissing } from './servers.ts'

const PROMETHEUS = fileURLToPath(new URL('../../prometheus/', import.meta.url))
const DASHBOARDS = fileURLToPath(new URL('../../grafana/dashboards/', import.meta.url))
const files = (folder: string) => readdirSync(join(PROMETHEUS, folder)).map((name) => join(PROMETHEUS, folder, name))
const promtool = (...args: string[]) => spawnSync('promtool', args, { encoding: 'utf8' })
const missing = whyMissing('promtool')

describe.skipIf(missing !== '')(`promtool${missing}`, () => {
  it('finds nothing wrong with the rules', () => {
    const { status, stdout, stderr } = promtool('check', 'rules', '--lint-fatal', ...files('rules'))
    expect(`${stdout}${stderr}`).toContain(`${ALERTS.flatMap(({ rules }) => rules).length} rules found`)
    expect(status, stderr).toBe(0)
  })

  it('sees every alert fire and stay quiet, and every recording give its value', () => {
    const { status, stdout, stderr } = promtool('test', 'rules', ...files('tests'))
    expect(status, `${stdout}${stderr}`).toBe(0)
  })

  /** What its parser says, by way of a rule for each. */
  function complaint(expressions: readonly string[]): string {
    const file = join(temporaryFolder(), 'rules.yml')
    const rules = expressions.map((expr, at) => ({ record: `panel:query:${at}`, expr }))
    writeFileSync(file, stringify({ groups: [{ name: 'panels', rules }] }))
    const { status, stdout, stderr } = promtool('check', 'rules', file)
    return status === 0 ? '' : `${stdout}${stderr}`
  }

  it('can read every query of the dashboards', () => {
    const boards = readdirSync(DASHBOARDS).map((name) => ({ name, board: JSON.parse(readFileSync(join(DASHBOARDS, name), 'utf8')) }))
    const expressions = boards.flatMap(({ name, board }) => panelQueries(name, board)).map(({ expr }) => filledIn(expr))
    expect(expressions.length).toBeGreaterThan(60)
    expect(complaint(expressions)).toBe('')
    expect(complaint([...expressions, 'rate(gpu_up)'])).not.toBe('')
  })
})
