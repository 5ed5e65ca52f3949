import { execFile } from 'node:child_process'
import { accessSync, constants, statfsSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { AgentClient } from '../../core/agent-client.ts'
import { formatBytes } from '../../core/format.ts'
import { VENDORS } from '../../sources/vendors.ts'
import { advice, type Check, type CheckResult, missing, ok } from './check.ts'

const run = promisify(execFile)
const LITTLE_DISK_BYTES = 1024 ** 3

export const checkNode: Check = async () => [ok('node', `Node.js ${process.versions.node} on ${process.platform}-${process.arch}`)]

/** Loaded in a process of its own: native code never comes into this one. */
export const checkNativeLibrary: Check = async () => {
  const needed = VENDORS.flatMap(({ title, help }) => (help.nativePackage === null ? [] : [{ title, name: help.nativePackage }]))
  return Promise.all(needed.map(({ title, name }) => checkPackage(name, `the library that calls the ${title} driver`)))
}

async function checkPackage(name: string, what: string): Promise<CheckResult> {
  try {
    await run(process.execPath, ['--input-type=module', '-e', `await import('${name}')`], {
      cwd: fileURLToPath(new URL('../../../', import.meta.url)),
      timeout: 10_000,
    })
    return ok(name, `${what} loads`)
  } catch (error) {
    const reason = String((error as { stderr?: string }).stderr ?? (error as Error).message)
      .trim()
      .split('\n')
      .at(-1)
    return missing(name, `${what} does not load: ${reason}`, 'Install again with "npm ci" (without --omit=optional) on this machine.')
  }
}

export const checkPort: Check = async ({ values }) => {
  const { 'server.host': host, 'server.port': port } = values
  const inUse = await new Promise<NodeJS.ErrnoException | null>((done) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => done(error))
    server.listen(port, host, () => server.close(() => done(null)))
  })
  if (inUse === null) return [ok('port', `${host}:${port} is free`)]
  if (inUse.code !== 'EADDRINUSE')
    return [missing('port', `${host}:${port} cannot be bound: ${inUse.message}`, 'Choose another address with --host and --port.')]
  const who = await new AgentClient({ url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`, token: null }).version(1000)
  if (who !== null) return [ok('port', `${host}:${port} is served by gpuwarden ${who}`)]
  return [advice('port', `${host}:${port} is used by another program`, 'Choose another port with --port or server.port.')]
}

export const checkDisk: Check = async ({ values }) => {
  const dir = resolve(values['log.dir'])
  const existing = nearestExisting(dir)
  try {
    accessSync(existing, constants.W_OK)
  } catch {
    return [missing('log folder', `${dir} cannot be written`, 'Choose another folder with --log-dir, or change its owner.')]
  }
  const { bavail, bsize } = statfsSync(existing)
  const free = bavail * bsize
  if (free < LITTLE_DISK_BYTES)
    return [advice('log folder', `${dir}: only ${formatBytes(free)} free`, 'Free some space, or lower log.keep_total_mb.')]
  return [ok('log folder', `${dir} can be written, ${formatBytes(free)} free`)]
}

function nearestExisting(path: string): string {
  for (let current = path; ; current = dirname(current)) {
    try {
      accessSync(current)
      return current
    } catch {
      if (current === dirname(current)) return current
    }
  }
}

export const checkConfiguration: Check = async ({ configWarnings }) =>
  configWarnings.length === 0
    ? [ok('configuration', 'valid')]
    : configWarnings.map((warning) => advice('configuration', warning, 'gpuwarden config lists every key and variable.'))
