// npm run package [-- --only npm,wheel,one-file,debian] [--out FOLDER]: everything that people install, into artifacts/, with checksums
// and a bill of materials. The same commit gives the same bytes. docs/releasing.md says what comes after it.
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { PACKAGE, ROOT, run, stageApplication } from './application.js'
import { makeDebian } from './debian.js'
import { makeOneFile } from './one-file.js'
import { nodeRuntime } from './runtime.js'

const KINDS = {
  npm: makeNpm,
  wheel: makeWheel,
  'one-file': (place) => makeOneFile({ ...place, application: application(place, ['x64']), runtime: nodeRuntime(place.cache) }),
  debian: (place) => makeDebian({ ...place, application: application(place, ['x64']), runtime: nodeRuntime(place.cache) }),
}

function main() {
  const { values } = parseArgs({ options: { only: { type: 'string' }, out: { type: 'string', default: join(ROOT, 'artifacts') } } })
  const kinds = values.only?.split(',') ?? Object.keys(KINDS)
  const unknown = kinds.find((kind) => !(kind in KINDS))
  if (unknown !== undefined) throw new Error(`--only ${unknown}: expected some of ${Object.keys(KINDS).join(', ')}`)
  const out = resolve(values.out)
  const work = join(out, '.work')
  const cache = join(ROOT, '.cache', 'package')
  for (const folder of [out, work, cache]) mkdirSync(folder, { recursive: true })
  const note = buildNote()
  const place = { out, work, cache, note, epoch: Math.floor(Date.parse(note.built) / 1000) }
  run(process.execPath, ['build.js'], { cwd: ROOT })
  for (const kind of kinds) {
    const began = performance.now()
    const file = KINDS[kind](place)
    const seconds = ((performance.now() - began) / 1000).toFixed(0)
    process.stdout.write(`${kind.padEnd(9)} ${file.slice(out.length + 1)}  ${(statSync(file).size / 1e6).toFixed(1)} MB, ${seconds} s\n`)
  }
  writeFileSync(join(out, `gpuwarden-${PACKAGE.version}.cdx.json`), sbom(note))
  rmSync(work, { recursive: true })
  const files = readdirSync(out)
    .filter((name) => name !== 'SHA256SUMS')
    .sort()
  const sums = files.map(
    (name) =>
      `${createHash('sha256')
        .update(readFileSync(join(out, name)))
        .digest('hex')}  ${name}`,
  )
  writeFileSync(join(out, 'SHA256SUMS'), `${sums.join('\n')}\n`)
}

/** SOURCE_DATE_EPOCH goes before the date of the commit, as tools for reproducible builds expect. */
function buildNote() {
  const git = (...args) => run('git', args, { cwd: ROOT }).trim()
  const isChanged = git('status', '--porcelain', '--untracked-files=no') !== ''
  const seconds = Number(process.env.SOURCE_DATE_EPOCH ?? git('log', '-1', '--format=%ct'))
  return { commit: `${git('rev-parse', 'HEAD')}${isChanged ? '+changes' : ''}`, built: new Date(seconds * 1000).toISOString() }
}

function application({ work, cache, note }, platforms) {
  const folder = join(work, `application-${platforms.join('-')}`)
  stageApplication(folder, { platforms, cache, note })
  return folder
}

/** As npm packs it, with the note of what it was made from; the note is no part of a working copy. */
function makeNpm({ out, note }) {
  const path = join(ROOT, 'dist/build.json')
  writeFileSync(path, `${JSON.stringify(note, null, 2)}\n`)
  try {
    const [{ filename }] = JSON.parse(run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', out], { cwd: ROOT }))
    return join(out, filename)
  } finally {
    rmSync(path)
  }
}

function makeWheel(place) {
  const folder = application(place, ['x64', 'arm64'])
  // The wheel is the SDK itself; the copy is for trainings in other Python environments.
  return run('python3', [join(ROOT, 'tools/package/wheel.py'), join(ROOT, 'python'), folder, place.out, String(place.epoch)]).trim()
}

/** npm's, without what differs from one time to the next. */
function sbom({ built }) {
  const list = JSON.parse(run('npm', ['run', '--silent', 'sbom'], { cwd: ROOT }))
  const { serialNumber: _, ...rest } = list
  return `${JSON.stringify({ ...rest, metadata: { ...rest.metadata, timestamp: built } }, null, 2)}\n`
}

try {
  main()
} catch (error) {
  process.stderr.write(`package: ${error.message}\n`)
  process.exitCode = 1
}
