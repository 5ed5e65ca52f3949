import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from './config.ts'
import { runDoctor } from './doctor-child.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gpuwarden-doctor-'))
})
afterEach(() => rm(folder, { recursive: true }))

/** Runs this script in place of the program. */
async function run(script: string, { limitMs = 30_000, signal = new AbortController().signal } = {}): Promise<string> {
  const program = join(folder, 'program.mjs')
  await writeFile(program, script)
  const file = join(folder, 'gpuwarden.yaml')
  await writeFile(file, 'log:\n  dir: /var/log/from-file\n')
  const config = loadConfig({ env: {}, file, flags: { 'server.host': '[::1]', 'log.dir': '-odd; rm' } })
  return runDoctor({ config, port: () => 4999, signal, limitMs, program })
}

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe('the doctor as a child', () => {
  it('is given the configuration of the agent, each part as one argument', async () => {
    const args = JSON.parse(await run('console.log(JSON.stringify(process.argv.slice(2))); process.exitCode = 1'))
    const config = `--config=${join(folder, 'gpuwarden.yaml')}`
    expect(args).toEqual(['doctor', '--json', '--log-dir=-odd; rm', '--host=::1', '--port=4999', '--deadline=5', config])
  })

  it('is ended with all that it started when it takes too long', async () => {
    const pidFile = join(folder, 'pid')
    const script = `
      import { spawn } from 'node:child_process'
      import { writeFileSync } from 'node:fs'
      const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' })
      writeFileSync(${JSON.stringify(pidFile)}, String(child.pid))
      setInterval(() => {}, 1000)`
    const abort = new AbortController()
    const running = run(script, { signal: abort.signal })
    running.catch(() => undefined)
    await expect.poll(() => readFile(pidFile, 'utf8').catch(() => ''), { timeout: 20_000 }).not.toBe('')
    const grandchild = Number(await readFile(pidFile, 'utf8'))
    abort.abort()
    await expect(running).rejects.toThrow('the agent stops')
    await expect.poll(() => isAlive(grandchild), { timeout: 10_000 }).toBe(false)
    await expect(run('setInterval(() => {}, 1000)', { limitMs: 300 })).rejects.toThrow('it was ended after 0.3 s')
  })

  it('says why it printed nothing', async () => {
    await expect(run("console.error('gpuwarden: wrong\\nmore'); process.exitCode = 2")).rejects.toThrow(
      'it ended with status 2: gpuwarden: wrong',
    )
    await expect(run("setInterval(() => process.stdout.write('x'.repeat(65536)), 1)")).rejects.toThrow('it printed too much')
    await expect(run('', { signal: AbortSignal.abort() })).rejects.toThrow('the agent stops')
  })
})
