/** The build goes by what its files hold, not by their times, and the command line never starts a bundle of other modules. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import vm from 'node:vm'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../program.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

function write(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}

function runNode(folder: string, ...args: readonly string[]): string {
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
  if (status !== 0) throw new Error(`node ${args.join(' ')} ended with ${status}: ${stdout}${stderr}`)
  return stdout
}

const started = (folder: string) => runNode(folder, 'bin/gpuwarden.js', 'which')

/** As unpacking or copying may leave them: the first kind long ago, the second in the future. */
function setTimes(folder: string, oldOnes: readonly string[], newOnes: readonly string[]): void {
  for (const path of oldOnes) utimesSync(join(folder, path), new Date('2001-01-01'), new Date('2001-01-01'))
  for (const path of newOnes) utimesSync(join(folder, path), new Date('2040-01-01'), new Date('2040-01-01'))
}

describe('what the command line starts', () => {
  const folder = temporaryFolder()
  const says = (word: string) => `export const main = () => { process.stdout.write('${word}'); return 0 }\n`
  const MODULES = 'dist/cli.js'
  const BUNDLE = 'dist/program/cli.js'

  beforeEach(() => {
    rmSync(join(folder, 'dist'), { recursive: true, force: true })
    cpSync(join(ROOT, 'bin'), join(folder, 'bin'), { recursive: true })
    write(folder, { 'package.json': '{"type":"module"}', 'src/cli.ts': '', [BUNDLE]: says('bundle'), 'dist/program/MADE-FROM': 'abc\n' })
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it.each([
    ['older', [BUNDLE], [MODULES]],
    ['newer', [MODULES], [BUNDLE]],
  ])('is the bundle of these modules, though it looks %s', (_, oldOnes, newOnes) => {
    write(folder, { [MODULES]: `${says('modules')}// program/ is made from abc\n` })
    setTimes(folder, oldOnes, newOnes)
    expect(started(folder)).toBe('bundle')
  })

  it.each([
    ['were compiled without it', ''],
    ['belong to another one', '// program/ is made from def\n'],
  ])('is the modules where they %s, though the bundle looks newer', (_, mark) => {
    write(folder, { [MODULES]: says('modules') + mark })
    setTimes(folder, [MODULES], [BUNDLE, 'dist/program/MADE-FROM'])
    expect(started(folder)).toBe('modules')
  })

  it('is the modules where the bundle was not finished', () => {
    write(folder, { [MODULES]: says('modules') })
    rmSync(join(folder, 'dist/program/MADE-FROM'))
    expect(started(folder)).toBe('modules')
  })

  it('is the bundle where there is nothing else', () => {
    expect(started(folder)).toBe('bundle')
  })
})

describe('building', () => {
  const folder = temporaryFolder()
  /** Whatever build.js lists. */
  const CHILDREN = [...readFileSync(join(ROOT, 'build.js'), 'utf8').matchAll(/'(src\/agent\/[\w-]+-child\.ts)'/g)].map(
    ([, path = '']) => path,
  )
  const OUTPUTS = ['dist/program/cli.js', 'dist/cli.js', 'dist/web/index.html', 'dist/web-report/report.js', 'dist/web-report/report.css']
  const INPUTS = ['src/cli.ts', 'src/agent/sampler-child.ts', 'web/index.html', 'package-lock.json', 'build.js']
  const program = (word: string) => `import { hostname as nameOf } from 'node:os'
/** Not needed at run time. */
export function main(): number {
  const isBundle = new Error().stack?.includes('/dist/program/')
  process.stdout.write('${word} ' + (isBundle ? 'bundle' : 'modules') + ' on ' + typeof nameOf())
  return 0
}
`
  const build = () => runNode(folder, 'build.js')
  const compile = () => runNode(folder, 'node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json')
  const madeAgain = () => OUTPUTS.filter((path) => statSync(join(folder, path)).mtime.getUTCFullYear() !== 2001)

  beforeAll(() => {
    for (const path of ['bin', 'build.js', 'tsconfig.json', 'tsconfig.build.json'])
      cpSync(join(ROOT, path), join(folder, path), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    write(folder, {
      'package.json': '{"type":"module"}',
      'package-lock.json': '{}',
      'src/cli.ts': program('first'),
      ...Object.fromEntries(CHILDREN.map((path) => [path, `export const child = '${path}'\n`])),
      'web/index.html': '<p>one</p>',
      'web/src/report/main.ts':
        "import { h } from 'preact'\nimport './report.css'\nconst name: string = 'drawn'\ndocument.title = name + typeof h\n",
      'web/src/report/report.css': 'p { color: red }\n',
      'web/src/report/snapshot-main.tsx': "import './report.css'\ndocument.title = 'snapshot'\n",
      'web/vite.config.ts': "export default { root: import.meta.dirname, build: { outDir: '../dist/web', emptyOutDir: true } }",
    })
    build()
  })
  beforeEach(() => setTimes(folder, OUTPUTS, INPUTS))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('leaves a bundle that is started, without comments, and that takes from Node.js only what it names', () => {
    expect(started(folder)).toBe('first bundle on string')
    const bundle = readFileSync(join(folder, 'dist/program/cli.js'), 'utf8')
    expect(bundle).toContain('= process.getBuiltinModule("node:os");')
    expect(bundle).not.toContain('Not needed')
  })

  it('makes nothing again where only times and tests have changed', () => {
    write(folder, { 'src/cli.test.ts': 'export const test = 1\n' })
    build()
    expect(madeAgain()).toEqual([])
  })

  it('makes again what has changed, though it looks old', () => {
    write(folder, { 'src/cli.ts': program('second') })
    setTimes(folder, INPUTS, [])
    build()
    expect(madeAgain()).toEqual(['dist/program/cli.js', 'dist/cli.js'])
    expect(started(folder)).toBe('second bundle on string')
    setTimes(folder, OUTPUTS, [])
    write(folder, { 'web/index.html': '<p>two</p>' })
    setTimes(folder, INPUTS, [])
    build()
    expect(madeAgain()).toEqual(['dist/web/index.html', 'dist/web-report/report.js', 'dist/web-report/report.css'])
  })

  it('leaves a script for reports that needs nothing else and names whose work is in it, and makes it again without its style', () => {
    const script = readFileSync(join(folder, 'dist/web-report/report.js'), 'utf8')
    expect(script).toMatch(/^\/\*\npreact [\d.]+\n[\s\S]*Copyright/)
    const page = { title: '' }
    vm.runInNewContext(script, { document: page })
    expect(page.title).toBe('drawnfunction')
    expect(readFileSync(join(folder, 'dist/web-report/report.css'), 'utf8')).toMatch(/^p\{color:red\}/)
    rmSync(join(folder, 'dist/web-report/report.css'))
    build()
    expect(madeAgain()).toEqual(['dist/web-report/report.js', 'dist/web-report/report.css'])
  })

  it('makes the bundle again after the compiler ran by itself; until then the modules are started', () => {
    write(folder, { 'src/cli.ts': program('third') })
    compile()
    setTimes(folder, ['dist/cli.js'], ['dist/program/cli.js'])
    expect(started(folder)).toBe('third modules on string')
    build()
    expect(started(folder)).toBe('third bundle on string')
  })
})
