// An agent with simulated GPUs, for what looks at its web UI.
import { spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const program = fileURLToPath(new URL('../../bin/gpuwarden.js', import.meta.url))

/** Its process and its address, once it serves. */
export function startDemoAgent(...args) {
  const cwd = mkdtempSync(join(tmpdir(), 'gpuwarden-demo-'))
  const child = spawn(process.execPath, [program, 'monitor', '--source', 'demo', '--port', '0', ...args], {
    cwd,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  return new Promise((resolve, reject) => {
    let text = ''
    child.stderr.on('data', (data) => {
      text += data
      const line = text.split('\n').find((one) => one.includes('gpuwarden is watching') && one.endsWith('}'))
      if (line) resolve({ child, url: JSON.parse(line).url })
    })
    child.once('exit', () => reject(new Error(text)))
  })
}
