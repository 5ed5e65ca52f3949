/** What `npm publish` would send: everything that an installed gpuwarden needs, and nothing that only its makers do. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { BUNDLED } from '../tools/licenses.js'

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

  it('has the licenses of everything that is bundled', () => {
    for (const path of ['dist/program/LICENSES.txt', 'dist/web/LICENSES.txt']) expect(files, path).toContain(path)
    const texts = ['dist/program/LICENSES.txt', 'dist/web/LICENSES.txt', 'dist/web-report/report.js'].map((path) =>
      readFileSync(`${ROOT}/${path}`, 'utf8'),
    )
    for (const name of BUNDLED) expect(texts.join('\n'), name).toMatch(new RegExp(`^${name} \\d`, 'm'))
    expect(texts.join('\n')).not.toContain('see its package')
  })

  it('has nothing but what is named here: a new kind of file is a decision', () => {
    const known = [
      /^(README|CHANGELOG)\.md$|^LICENSE$|^package\.json$|^bin\/gpuwarden\.js$/,
      /^dist\/([\w-]+\/)*[\w.-]+\.(js|d\.ts)$|^dist\/([\w-]+\/)?(MADE-FROM|LICENSES\.txt|web-MADE-FROM)$/,
      /^dist\/web(-report)?\/([\w-]+\/)*[\w.-]+\.(html|css|js|png|svg|webmanifest|woff2)$/,
      /^docs\/([\w-]+\/)*[\w.-]+\.(md|png|svg|gif|webp)$/,
      /^(grafana\/dashboards\/[\w-]+\.json|prometheus\/([\w-]+\/)?[\w.-]+\.(ya?ml|json|example))$/,
      /^deploy\/([\w-]+\/)?([\w.-]+\.(ya?ml|service|env|tmpl|conf|dockerignore)|Dockerfile(\.dockerignore)?)$/,
      /^python\/(LICENSE|README\.md|pyproject\.toml|gpuwarden\/((startup|memory|gpu_monitor|compat(\/\w+)?)\/\w+\.py|\w+\.py|py\.typed))$/,
    ]
    expect([...files].filter((path) => !known.some((pattern) => pattern.test(path)))).toEqual([])
  })

  it('has no secret, no path of the machine that made it, and no map to sources that are not there', () => {
    const suspicious = /BEGIN [A-Z ]*PRIVATE KEY|\/(?:home|work|Users)\/[\w.-]+\/(?!\.\.\.)[\w./-]*node_modules|_authToken=/
    const found = [...files].filter(
      (path) => /\.(js|ts|json|ya?ml|md|txt|py)$/.test(path) && suspicious.test(readFileSync(`${ROOT}/${path}`, 'utf8')),
    )
    expect(found).toEqual([])
    expect([...files].filter((path) => path.endsWith('.map'))).toEqual([])
  })
})
