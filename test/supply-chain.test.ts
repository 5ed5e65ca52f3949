/** What comes with the packages that gpuwarden is made of: their licenses, their scripts, their checksums, and a bill of materials. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { packages } from '../tools/licenses.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const ALL = packages()
/** What a program under MIT may carry. MPL-2.0 asks for the source of its own files, which are unchanged and public. */
const ALLOWED = new Set(['MIT', 'MIT-0', 'ISC', '0BSD', 'BSD-3-Clause', 'Apache-2.0', 'MPL-2.0', 'MIT OR Apache-2.0'])
/** It finds its prebuilt library, or compiles it where there is none. */
const MAY_RUN_AT_INSTALL = ['koffi']

describe('dependencies', () => {
  it('have licenses that allow it; the page lists them all (docs/licenses.md)', () => {
    expect(ALL.length).toBeGreaterThan(100)
    expect(ALL.filter(({ license }) => license === null || !ALLOWED.has(license))).toEqual([])
    const page = readFileSync(`${ROOT}/docs/licenses.md`, 'utf8')
    for (const { name } of ALL.filter((one) => one.isShipped && !/-(android|darwin|freebsd|linux|openbsd|win32)/.test(one.name)))
      expect(page).toContain(`\`${name}\``)
  })

  it('run nothing at installation, but what is needed', () => {
    const running = ALL.filter(({ hasInstallScript }) => hasInstallScript).map(({ name }) => name)
    expect(running).toEqual(MAY_RUN_AT_INSTALL)
    const { scripts } = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8')) as { scripts: Record<string, string> }
    expect(Object.keys(scripts).filter((name) => /^(pre|post)?install$/.test(name))).toEqual([])
  })

  it('are exact versions with a checksum', () => {
    expect(ALL.filter(({ integrity }) => !integrity?.startsWith('sha512-'))).toEqual([])
    const { dependencies, devDependencies } = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8')) as Record<
      string,
      Record<string, string>
    >
    expect(Object.values({ ...dependencies, ...devDependencies }).filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([])
  })

  it('are in the bill of materials, which needs no network (npm run sbom)', () => {
    const { stdout, stderr } = spawnSync('npm', ['run', '--silent', 'sbom', '--', '--offline'], {
      cwd: ROOT,
      encoding: 'utf8',
      maxBuffer: 1 << 26,
    })
    expect(stdout, stderr).toMatch(/^\{/)
    const bill = JSON.parse(stdout) as { bomFormat: string; components: { name: string; version: string; hashes?: unknown[] }[] }
    expect(bill.bomFormat).toBe('CycloneDX')
    const listed = new Set(bill.components.map(({ name, version }) => `${name}@${version}`))
    expect(ALL.filter(({ name, version }) => !listed.has(`${name}@${version}`)).map(({ name }) => name)).toEqual([])
    expect(bill.components.filter(({ hashes }) => !hashes?.length)).toEqual([])
  })
})
