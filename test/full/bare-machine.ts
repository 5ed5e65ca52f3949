/** This machine as somebody else's: its files with a layer above them, in which programs can be missing and packages be installed, and which is gone afterwards. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../program.ts'

export interface Outcome {
  readonly status: number | null
  readonly output: string
}

/** Why there can be none here, or null. */
export async function whyNoBareMachine(): Promise<string | null> {
  for (const program of ['unshare', 'setpriv', 'chroot', 'mount'])
    if (spawnSync(program, ['--version']).error) return `${program} is not installed`
  const { status, output } = await new BareMachine().run('true')
  return status === 0 ? null : `a layer above / cannot be mounted here: ${output.trim().slice(0, 200)}`
}

export class BareMachine {
  readonly #folder = temporaryFolder()

  /**
   * Runs a script of sh as root on a fresh machine. `without`: programs that are not installed there. `files`: what lies in /given.
   * What is printed by the script is the outcome; several scripts that belong together are one.
   */
  run(
    script: string,
    {
      without = [],
      files = {},
      env = {},
    }: { without?: readonly string[]; files?: Record<string, string>; env?: Record<string, string> } = {},
  ): Promise<Outcome> {
    const given = join(this.#folder, 'given')
    mkdirSync(given, { recursive: true })
    writeFileSync(join(given, 'script.sh'), script)
    const world = join(this.#folder, 'world')
    mkdirSync(world, { recursive: true })
    const links = Object.entries(files).map(([name, path]) => `cp ${quoted(path)} "$m/given/${name}"`)
    const gone = without.map(
      (name) =>
        `for p in $(chroot "$m" /bin/sh -c 'IFS=:; for d in $PATH; do [ -e "$d/${name}" ] && echo "$d/${name}"; done'); do rm -f "$m$p"; done`,
    )
    const prepare = [
      'set -e',
      'mount --make-rprivate /',
      `mount -t tmpfs tmpfs ${quoted(world)}`,
      `cd ${quoted(world)}`,
      'mkdir u w m',
      `m=${quoted(join(world, 'm'))}`,
      'mount -t overlay overlay -o lowerdir=/,upperdir=u,workdir=w m',
      'mount --rbind /proc "$m/proc"',
      'mount --rbind /dev "$m/dev"',
      'mount -t tmpfs -o mode=1777 tmpfs "$m/tmp"',
      'mkdir -p "$m/given"',
      `cp ${quoted(join(given, 'script.sh'))} "$m/given/"`,
      ...links,
      ...gone,
      'exec chroot "$m" /bin/sh -eu /given/script.sh',
    ].join('\n')
    const child = spawn('unshare', ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', prepare], {
      timeout: 170_000,
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', LANG: 'C.UTF-8', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data))
    return new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (status) => resolve({ status, output }))
    })
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
