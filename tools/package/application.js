// The program as a folder that any Node.js of the right version starts: what the wheel, the one file and the Debian package carry.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))
export const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const LOCK = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages

const CONTENTS = [
  'LICENSE',
  'bin',
  'dist/program',
  'dist/web',
  'dist/web-report',
  'grafana/dashboards',
  'prometheus/rules',
  'prometheus/file_sd',
  'prometheus/prometheus.yml',
  'python/gpuwarden',
]
/** Packages outside the bundle (NOT_BUNDLED in build.js); what they need comes along. */
const PACKAGES = ['koffi', '@resvg/resvg-js', 'pino', 'nodemailer']
/** The parts of native packages, by the words that end their names. */
const NATIVE = { x64: ['linux-x64', 'linux-x64-gnu', 'linux-x64-musl'], arm64: ['linux-arm64', 'linux-arm64-gnu', 'linux-arm64-musl'] }
const NOT_NEEDED =
  /\/(vendor|doc|docs|test|tests|benchmarks|examples|browser|node_modules|\.github)(\/|$)|\.(d\.[cm]?ts|map|md|cc|cpp|hh|h|S|asm|inc|txt|gyp)$|\/cnoke\.cjs$/

/** `platforms`: of 'x64' and 'arm64'. `cache`: where fetched packages are kept. `note`: which commit and when. */
export function stageApplication(target, { platforms, cache, note }) {
  rmSync(target, { recursive: true, force: true })
  for (const path of CONTENTS) copy(join(ROOT, path), join(target, path))
  const { name, version, description, license, type, engines, bin } = PACKAGE
  write(join(target, 'package.json'), { name, version, description, license, type, engines, bin })
  write(join(target, 'dist/build.json'), note)
  for (const needed of withDependencies(PACKAGES))
    copy(join(ROOT, 'node_modules', needed), join(target, 'node_modules', needed), NOT_NEEDED)
  for (const native of nativeParts(platforms)) stageNative(native, join(target, 'node_modules', native), cache)
}

function write(path, value) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`)
}

function copy(from, to, without = /(^|\/)(__pycache__(\/|$)|\.DS_Store$)|\.pyc$/) {
  const skipped = from.length
  cpSync(from, to, { recursive: true, dereference: true, filter: (path) => /licen[cs]e/i.test(path) || !without.test(path.slice(skipped)) })
}

function withDependencies(names, found = new Set()) {
  for (const name of names)
    if (!found.has(name)) {
      found.add(name)
      withDependencies(Object.keys(lockOf(name).dependencies ?? {}), found)
    }
  return found
}

function lockOf(name) {
  const entry = LOCK[`node_modules/${name}`]
  if (entry === undefined) throw new Error(`package-lock.json has no ${name}: run npm install`)
  return entry
}

function nativeParts(platforms) {
  const ends = platforms.flatMap((platform) => NATIVE[platform])
  return PACKAGES.flatMap((name) => Object.keys(lockOf(name).optionalDependencies ?? {})).filter((name) =>
    ends.some((end) => name.endsWith(`-${end}`)),
  )
}

/** From node_modules where this machine has it, else from the registry, checked against package-lock.json. */
function stageNative(name, target, cache) {
  const here = join(ROOT, 'node_modules', name)
  if (existsSync(here)) return copy(here, target)
  const { version, integrity } = lockOf(name)
  const tarball = join(cache, `${name.replaceAll(/[@/]/g, '-')}-${version}.tgz`)
  if (!existsSync(tarball)) fetchPackage(`${name}@${version}`, cache, tarball)
  const digest = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`
  if (digest !== integrity)
    throw new Error(
      `${tarball} is not the package that package-lock.json names: expected ${integrity}, got ${digest}. Delete it and try again.`,
    )
  mkdirSync(target, { recursive: true })
  run('tar', ['-xzf', tarball, '-C', target, '--strip-components=1', '--no-same-owner'])
}

function fetchPackage(what, cache, tarball) {
  const folder = join(cache, 'fetching')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  run('npm', ['pack', what, '--ignore-scripts', '--silent', '--pack-destination', folder])
  const [file] = readdirSync(folder)
  cpSync(join(folder, file), tarball)
  rmSync(folder, { recursive: true })
}

/** Fails loudly, with what the program said. */
export function run(command, args, options = {}) {
  const { status, error, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 28, ...options })
  if (error?.code === 'ENOENT') throw new Error(`${command} is not installed: it is needed to make the packages`)
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${(stderr || stdout || error?.message || '').slice(-2000)}`)
  return stdout
}
