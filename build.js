// Makes dist/ from src/, in steps that are skipped when nothing they read is newer than what they wrote.
// Run by `npm ci` (prepare), `npm start` and the tests; --clean begins with an empty folder.
//   dist/            each module compiled by itself, with its types: what the library exports
//   dist/web/        the dashboard that the agent serves
//   dist/program/    the same as a few files, dependencies included: what the command line starts, quickly
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const require = createRequire(import.meta.url)
const inside = (...parts) => join(here, ...parts)

/** `makes`: what is written last, and only when all went well. */
const STEPS = [
  {
    makes: 'dist/program/cli.js',
    from: ['src', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json', 'dist/cli.js'],
    run: async () => compile() && (await bundle()),
  },
  {
    makes: 'dist/web/index.html',
    from: ['web', 'src/format.ts', 'src/memory/ledger.ts', 'package-lock.json'],
    run: dashboard,
  },
]

/** What the program starts as a process of its own has to stay a file of its own. */
const ENTRIES = { cli: 'src/cli.ts', 'sampler/child': 'src/sampler/child.ts' }
/** Native code, and what starts files of its own or is needed by none of the quick commands. */
const NOT_BUNDLED = ['koffi', '@resvg/resvg-js', 'pino', 'nodemailer']
/** Modules that start an entry see themselves beside it; all others where the compiler puts them. */
const STARTS_ENTRIES = new Set(['sampling.ts'])

await build()

async function build() {
  // An installed package (no development dependencies) carries dist/ already.
  if (!isInstalled('typescript')) return
  if (process.argv.includes('--clean')) rmSync(inside('dist'), { recursive: true, force: true })
  for (const step of STEPS) {
    if (isFresh(step)) continue
    if (!(await step.run())) {
      process.exitCode = 1
      return
    }
  }
}

function isInstalled(name) {
  try {
    require.resolve(`${name}/package.json`)
    return true
  } catch {
    return false
  }
}

function isFresh({ makes, from }) {
  if (!existsSync(inside(makes))) return false
  const { mtimeMs } = statSync(inside(makes))
  return [...from, 'package.json', 'build.js'].every((path) => newest(inside(path)) <= mtimeMs)
}

/** Of a file, or of a folder with all in it; a removed file shows in its folder. */
function newest(path) {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (!stat) return 0
  if (!stat.isDirectory()) return stat.mtimeMs
  return readdirSync(path).reduce((latest, name) => Math.max(latest, newest(join(path, name))), stat.mtimeMs)
}

function compile() {
  const compiler = join(dirname(require.resolve('typescript/package.json')), 'bin', 'tsc')
  const { status } = spawnSync(process.execPath, [compiler, '-p', inside('tsconfig.build.json')], { stdio: 'inherit' })
  return status === 0
}

async function bundle() {
  const { build: viteBuild } = await import('vite')
  const outDir = inside('dist/program')
  const { output } = await viteBuild({
    configFile: false,
    root: here,
    logLevel: 'warn',
    plugins: [placesOfModules()],
    ssr: { noExternal: true, external: NOT_BUNDLED },
    build: {
      ssr: true,
      outDir,
      emptyOutDir: false,
      target: 'node20',
      minify: false,
      rolldownOptions: {
        input: Object.fromEntries(Object.entries(ENTRIES).map(([name, path]) => [name, inside(path)])),
        // Names without hashes: a program that runs while it is built again still finds its parts.
        output: { entryFileNames: '[name].js', chunkFileNames: 'parts/[name].js', minifyInternalExports: false },
      },
    },
  })
  removeLeftovers(outDir, new Set(output.map(({ fileName }) => resolve(outDir, fileName))))
  writeFileSync(join(outDir, 'LICENSES.txt'), licenses(output))
  return true
}

async function dashboard() {
  const { build: viteBuild } = await import('vite')
  await viteBuild({ configFile: inside('web/vite.config.ts'), logLevel: 'warn' })
  return true
}

/** `import.meta.url` of a bundled module is that of its file in dist/, so that what it looks for beside itself is found. */
function placesOfModules() {
  return {
    name: 'places-of-modules',
    transform(code, id) {
      const path = relative(inside('src'), id)
      if (path.startsWith('..') || !code.includes('import.meta.url')) return null
      return { code: code.replaceAll('import.meta.url', `__PLACE_OF__(${JSON.stringify(path)})`), map: null }
    },
    renderChunk(code, { fileName }) {
      if (!code.includes('__PLACE_OF__')) return null
      const up = '../'.repeat(fileName.split('/').length - 1)
      const place = (_, quoted) => {
        const path = JSON.parse(quoted)
        const folder = STARTS_ENTRIES.has(path) ? up || './' : `${up}../`
        return `new URL(${JSON.stringify(folder + path.replace(/\.ts$/, '.js'))}, import.meta.url).href`
      }
      return { code: code.replace(/__PLACE_OF__\(("[^"]*")\)/g, place), map: null }
    },
  }
}

function removeLeftovers(folder, kept) {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile() && !kept.has(path)) rmSync(path)
  }
}

/** Those of the packages that are part of the bundle: their terms ask for it. */
function licenses(output) {
  const folders = new Set(output.flatMap(({ moduleIds = [] }) => moduleIds.map(packageFolder)).filter(Boolean))
  return [...folders]
    .sort()
    .map((folder) => {
      const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
      const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one))
      return `${name} ${version}\n\n${file ? readFileSync(join(folder, file), 'utf8').trim() : 'see its package'}\n`
    })
    .join(`\n${'-'.repeat(80)}\n\n`)
}

function packageFolder(id) {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0]
}
