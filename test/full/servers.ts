/** Real servers from the distribution's packages, each in a folder of its own on a port of its own. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { temporaryFolder, until } from '../program.ts'

/** '' when they are there, else the words for the title of a skipped test. */
export function whyMissing(...programs: readonly string[]): string {
  const missing = programs.filter((program) => spawnSync('which', [program]).status !== 0)
  return missing.length === 0 ? '' : ` (skipped: ${missing.join(', ')} not on the PATH; test/full/run.sh installs them where it can)`
}

export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return address.port
}

export class Server {
  readonly url: string
  readonly folder: string
  readonly #start: () => ChildProcess
  #child: ChildProcess

  private constructor(url: string, folder: string, start: () => ChildProcess) {
    this.url = url
    this.folder = folder
    this.#start = start
    this.#child = start()
  }

  static async open(
    program: string,
    port: number,
    folder: string,
    args: readonly string[],
    readyPath: string,
    limitMs?: number,
  ): Promise<Server> {
    let output = ''
    const server = new Server(`http://127.0.0.1:${port}`, folder, () => {
      const child = spawn(program, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
      for (const stream of [child.stdout, child.stderr])
        stream?.on('data', (data) => {
          output = (output + data).slice(-5000)
        })
      return child
    })
    await server.#ready(readyPath, limitMs).catch((cause) => {
      throw new Error(`${program} did not start: ${output}`, { cause })
    })
    return server
  }

  async #ready(path: string, limitMs?: number): Promise<void> {
    await until('the server answers', async () => (await fetch(this.url + path)).ok, limitMs)
  }

  async get<T>(path: string): Promise<T> {
    const answer = await fetch(this.url + path)
    if (!answer.ok) throw new Error(`${path}: HTTP ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as T
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('close', resolve))
    this.#child.kill('SIGTERM')
    await ended
  }

  /** The same server again, on what it wrote. */
  async restart(readyPath: string): Promise<void> {
    await this.stop()
    this.#child = this.#start()
    await this.#ready(readyPath)
  }
}

export interface PrometheusOptions {
  /** `host:port`, and the labels that its series get. */
  readonly targets: readonly { readonly target: string; readonly job: string; readonly instance: string; readonly token?: string }[]
  readonly rules?: readonly string[]
  readonly alertmanager?: string
}

export async function prometheus({ targets, rules = [], alertmanager }: PrometheusOptions): Promise<Server> {
  const folder = temporaryFolder()
  const port = await freePort()
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: rules,
    ...(alertmanager === undefined
      ? {}
      : { alerting: { alertmanagers: [{ static_configs: [{ targets: [new URL(alertmanager).host] }] }] } }),
    scrape_configs: targets.map(({ target, job, instance }, at) => ({
      job_name: `${job}-${at}`,
      static_configs: [{ targets: [target], labels: { instance } }],
      relabel_configs: [{ target_label: 'job', replacement: job }],
    })),
  }
  writeFileSync(join(folder, 'prometheus.yml'), stringify(config))
  const args = [
    `--config.file=${join(folder, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--web.enable-remote-write-receiver',
    '--log.level=warn',
  ]
  return Server.open('prometheus', port, folder, args, '/-/ready')
}

export async function alertmanager(configFile: string): Promise<Server> {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'data'))
  const port = await freePort()
  const args = [
    `--config.file=${configFile}`,
    `--storage.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--cluster.listen-address=',
    '--log.level=warn',
  ]
  return Server.open('prometheus-alertmanager', port, folder, args, '/-/ready')
}

export async function victoriaMetrics(): Promise<Server> {
  const folder = temporaryFolder()
  const port = await freePort()
  const args = [
    `-httpListenAddr=127.0.0.1:${port}`,
    `-storageDataPath=${join(folder, 'data')}`,
    '-retentionPeriod=100y',
    '-search.latencyOffset=0s',
  ]
  return Server.open('victoria-metrics', port, folder, args, '/health')
}

export interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [at: number, value: string]
}

/** An instant query; throws with Prometheus' own words when the expression is wrong. */
export async function query(server: Server, expr: string, at?: number): Promise<readonly Sample[]> {
  const time = at === undefined ? '' : `&time=${at}`
  const answer = await fetch(`${server.url}/api/v1/query?query=${encodeURIComponent(expr)}${time}`)
  const body = (await answer.json()) as { status: string; error?: string; data?: { resultType: string; result: unknown } }
  if (body.status !== 'success') throw new Error(`${expr}: ${body.error}`)
  return (body.data?.resultType === 'vector' ? body.data.result : []) as readonly Sample[]
}
