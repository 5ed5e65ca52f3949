/** `gpuwarden monitor` on a real terminal: tmux. */
import { spawnSync } from 'node:child_process'
import { afterEach, describe, expect, it } from 'vitest'
import { buildFakeNvml, fakeNvmlScript } from '../fake-nvml/index.ts'
import { BIN, temporaryFolder, until } from '../program.ts'

const hasTmux = spawnSync('tmux', ['-V']).status === 0
let opened = 0
const tmux = (...args: string[]) => spawnSync('tmux', ['-L', `gpuwarden-test-${process.pid}-${opened}`, ...args], { encoding: 'utf8' })
const screen = () => tmux('capture-pane', '-p', '-t', 'monitor').stdout

/** Starts it as the only command of a new terminal; the screen stays after it ended. */
function open(
  args: string,
  { env = {}, columns = 110, rows = 14 }: { env?: Record<string, string>; columns?: number; rows?: number } = {},
): void {
  const variables = Object.entries({ XDG_CONFIG_HOME: '/nonexistent', ...env }).flatMap(([name, value]) => ['-e', `${name}=${value}`])
  const command = `${process.execPath} ${BIN} monitor --port 0 --log-dir ${temporaryFolder()} ${args}; echo "exit code $?"; sleep 60`
  // A server of its own: the one before may still be on its way out.
  opened++
  const { status, stderr } = tmux('new-session', '-d', '-s', 'monitor', '-x', String(columns), '-y', String(rows), ...variables, command)
  if (status !== 0) throw new Error(`tmux did not open a terminal: ${stderr}`)
}

afterEach(() => {
  tmux('kill-server')
})

describe.skipIf(!hasTmux)(`monitor on a terminal${hasTmux ? '' : ' (skipped: tmux is not installed)'}`, () => {
  it('says where the web UI is, shows a line per GPU in place, and ends cleanly on Ctrl-C', async () => {
    open('--source demo --demo-gpus 3 --interval 0.5')
    const first = await until('three GPUs are shown', () => (screen().match(/^GPU \d .*SIMULATED.*util/gm)?.length === 3 ? screen() : null))
    expect(first).toMatch(/web UI and API http:\/\/127\.0\.0\.1:\d+/)
    await until('the lines change', () => screen() !== first)
    expect(screen().match(/^GPU /gm)).toHaveLength(3)
    tmux('send-keys', '-t', 'monitor', 'C-c')
    await until('it ended', () => screen().includes('exit code 0'))
    expect(screen()).toContain('Stopped (Ctrl-C)')
  })

  it('shows a driver that does not respond, since when, and marks the values as old', async () => {
    const script = fakeNvmlScript({ gpus: 1 })
    const env = { GPUWARDEN_NVML: buildFakeNvml(), GPUWARDEN_RESTART_FIRST: '20', ...script.env }
    open('--source nvidia --interval 0.2 --deadline 1', { env })
    await until('the GPU is shown', () => /^GPU 0 .*util/m.test(screen()))
    script.update({ hang: 'nvmlDeviceGetMemoryInfo_v2' })
    await until('the trouble is shown', () => /! nvidia not responding since \d\d:\d\d:\d\d/.test(screen()))
    expect(screen()).toMatch(/GPU 0 .*last sample .* ago .*not live/)
  })

  it('keeps to a small screen', async () => {
    open('--source demo --demo-gpus 16 --interval 0.5', { columns: 60, rows: 8 })
    await until('the rest is summed up', () => /and \d+ more GPUs/.test(screen()))
    expect(
      screen()
        .split('\n')
        .filter((line) => line.startsWith('GPU ')).length,
    ).toBeLessThan(7)
  })
})
