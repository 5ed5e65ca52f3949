// Makes dist/ from src/, in steps that are skipped when what they read is what they last read: by content, as a copied folder has any times.
// Run by `npm ci` (prepare), `npm start` and the tests; --clean begins with an empty folder.
//   dist/            each module compiled by itself, with its types: what the library exports
//   dist/web/        the web UI that the agent serves
//   dist/web-report/ the scripts and the styles that HTML reports carry
//   dist/program/    the same as a few files, dependencies included: what the command line starts, quickly
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const require = createRequire(import.meta.url)
const inside = (...parts) => join(here, ...parts)

/** `stamp`: the digest of what it was made from, written last and only when all went well. */
const STEPS = [
  {
    makes: 'dist/program/cli.js',
    stamp: 'dist/program/MADE-FROM',
    from: ['src', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json'],
    run: async () => compile() && (await bundle()),
    isWhole: (digest) => readText('dist/cli.js').endsWith(markOf(digest)),
    finish: (digest) => appendFileSync(inside('dist/cli.js'), markOf(digest)),
  },
  {
    makes: 'dist/web/index.html',
    stamp: 'dist/web-MADE-FROM',
    from: ['web', 'src/core', 'package-lock.json'],
    run: webUi,
    isWhole: () => true,
    finish: () => undefined,
  },
  {
    makes: 'dist/web-report/report.js',
    stamp: 'dist/web-report/MADE-FROM',
    from: ['web', 'src/core', 'package-lock.json'],
    run: reportPage,
    isWhole: () => ['report.css', 'snapshot.js', 'snapshot.css'].every((name) => existsSync(inside('dist/web-report', name))),
    finish: () => undefined,
  },
]
/** The compiler, run by itself, takes this line away; bin/gpuwarden.js then knows that the bundle is not of these modules. */
const markOf = (digest) => `// program/ is made from ${digest}\n`
const NOT_BUILT = /\.(test|contract|fixture)\.tsx?$|\.golden\./

/** One script that needs nothing else, and one style, for each kind of HTML file; what is of others says so, as their terms ask for it. */
const REPORT_ENTRIES = { report: 'web/src/report/main.ts', snapshot: 'web/src/report/snapshot-main.tsx' }
/** What the program starts as a process of its own has to stay a file of its own. */
const ENTRIES = {
  cli: 'src/cli.ts',
  'agent/sampler-child': 'src/agent/sampler-child.ts',
  'agent/snapshot-child': 'src/agent/snapshot-child.ts',
  'agent/tiers-child': 'src/agent/tiers-child.ts',
}
/** Native code, and what starts files of its own or is needed by none of the quick commands. */
const NOT_BUNDLED = ['koffi', '@resvg/resvg-js', 'pino', 'nodemailer']
/** Modules that start an entry see themselves beside it; all others where the compiler puts them. */
const STARTS_ENTRIES = new Set(['agent/sampling.ts', 'agent/snapshots.ts', 'agent/tiers.ts'])

await build()

async function build() {
  // An installed package (no development dependencies) carries dist/ already.
  if (!isInstalled('typescript')) return
  if (process.argv.includes('--clean')) rmSync(inside('dist'), { recursive: true, force: true })
  for (const step of STEPS) {
    const digest = digestOf([...step.from, 'package.json', 'build.js'])
    if (existsSync(inside(step.makes)) && readText(step.stamp) === `${digest}\n` && step.isWhole(digest)) continue
    if (!(await step.run())) {
      process.exitCode = 1
      return
    }
    writeFileSync(inside(step.stamp), `${digest}\n`)
    step.finish(digest)
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

function readText(path) {
  return existsSync(inside(path)) ? readFileSync(inside(path), 'utf8') : ''
}

/** Of files, and of folders with all in them but tests: names and contents. */
function digestOf(paths) {
  const hash = createHash('sha256')
  for (const path of paths.flatMap(filesOf).sort())
    hash
      .update(`${path}\0`)
      .update(readFileSync(inside(path)))
      .update('\0')
  return hash.digest('hex')
}

function filesOf(path) {
  const stat = statSync(inside(path), { throwIfNoEntry: false })
  if (stat?.isDirectory()) return readdirSync(inside(path)).flatMap((name) => filesOf(join(path, name)))
  return stat && !NOT_BUILT.test(path) ? [path] : []
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
    plugins: [placesOfModules(), builtinsAsNeeded()],
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
        output: {
          entryFileNames: '[name].js',
          chunkFileNames: 'parts/[name].js',
          minifyInternalExports: false,
          // Source text is kept in memory for as long as the program runs.
          comments: { legal: true, annotation: false, jsdoc: false },
        },
      },
    },
  })
  removeLeftovers(outDir, new Set(output.map(({ fileName }) => resolve(outDir, fileName))))
  writeFileSync(join(outDir, 'LICENSES.txt'), licenses(output))
  return true
}

async function webUi() {
  const { build: viteBuild } = await import('vite')
  const { output } = await viteBuild({ configFile: inside('web/vite.config.ts'), logLevel: 'warn' })
  writeFileSync(inside('dist/web/LICENSES.txt'), licenses(output))
  return true
}

async function reportPage() {
  const { build: viteBuild } = await import('vite')
  mkdirSync(inside('dist/web-report'), { recursive: true })
  for (const [name, entry] of Object.entries(REPORT_ENTRIES)) {
    const [{ output }] = await viteBuild({
      configFile: false,
      root: inside('web'),
      publicDir: false,
      logLevel: 'warn',
      oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
      build: {
        write: false,
        target: 'es2022',
        lib: { entry: inside(entry), formats: ['iife'], name: 'report', fileName: () => `${name}.js`, cssFileName: name },
      },
    })
    for (const { fileName, code, source } of output)
      writeFileSync(inside('dist/web-report', fileName), code === undefined ? source : `/*\n${licenses(output)}*/\n${code}`)
  }
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

/** Importing a module of Node.js reads all that it offers, and so loads, on Node.js 24, the whole of fetch with `node:http` (10 MB). */
function builtinsAsNeeded() {
  const ofBuiltin = /^import (?:([\w$]+)|\* as ([\w$]+)|\{([^}]*)\}) from "(node:[\w/]+)";$/gm
  return {
    name: 'builtins-as-needed',
    renderChunk(code) {
      const changed = code.replace(ofBuiltin, (_, whole, all, named, module) => {
        const wanted = named === undefined ? (whole ?? all) : `{${named.replaceAll(' as ', ': ')}}`
        return `const ${wanted} = process.getBuiltinModule("${module}");`
      })
      return changed === code ? null : { code: changed, map: null }
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
