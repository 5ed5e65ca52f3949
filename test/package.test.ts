/** What `npm publish` would send: everything that an installed gpuwarden needs, and nothing that only its makers do. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

function packed(): string[] {
  const { stdout } = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: ROOT, encoding: 'utf8' })
  const [description] = JSON.parse(stdout) as { files: { path: string }[] }[]
  return (description?.files ?? []).map(({ path }) => path)
}

describe('the package', () => {
  const files = new Set(packed())

  it('has the program, the sampler, the library with its types, and the licence', () => {
    for (const path of [
      'bin/gpuwarden.js',
      'dist/program/cli.js',
      'dist/program/agent/sampler-child.js',
      'dist/program/MADE-FROM',
      'dist/agent/sampler-child.js',
      'dist/index.js',
      'dist/index.d.ts',
      'dist/program/LICENSES.txt',
      'LICENSE',
      'README.md',
    ])
      expect(files, path).toContain(path)
  })

  it('has the web UI with all that its page asks for', () => {
    const page = readFileSync(`${ROOT}/dist/web/index.html`, 'utf8')
    const asked = [...page.matchAll(/(?:src|href)="\/([^"]+)"/g)].map((match) => `dist/web/${match[1]}`)
    expect(asked.length).toBeGreaterThan(3)
    for (const path of ['dist/web/index.html', ...asked]) expect(files, path).toContain(path)
  })

  it('has what every HTML report carries', () => {
    for (const path of ['dist/web-report/report.js', 'dist/web-report/report.css']) expect(files, path).toContain(path)
  })

  it('has what the export commands write', () => {
    expect([...files].some((path) => /^grafana\/dashboards\/.*\.json$/.test(path))).toBe(true)
    expect([...files].some((path) => /^prometheus\/rules\/.*\.ya?ml$/.test(path))).toBe(true)
  })

  it('has no tests, fixtures or logs of ours', () => {
    expect([...files].filter((path) => /\.(test|contract|fixture)\.|^(src|fixtures|test|gpu_logs|node_modules)\//.test(path))).toEqual([])
  })
})
