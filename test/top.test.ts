/** `gpuwarden top` as a program: in a terminal of Python's, as one frame of text, and without a terminal. Its keys are tried in test/full. */
import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { BIN, run } from './program.ts'

/** Starts it in a terminal of 100×30, presses q at its first frame, and prints how it ended and what it had drawn. */
const TERMINAL = `
import fcntl, os, pty, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    os.execve(sys.argv[1], sys.argv[1:], {**os.environ, "TERM": "xterm-256color", "GPUWARDEN_SERVER_PORT": "1"})
drawn, asked = b"", False
while True:
    try:
        part = os.read(terminal, 65536)
    except OSError:
        break
    if not part:
        break
    drawn += part
    if not asked and b"SIMULATED" in drawn:
        asked = os.write(terminal, b"q") == 1
print(os.waitpid(pid, 0)[1])
sys.stdout.buffer.write(drawn)
`

it('draws on a terminal, and gives it back when it is left', () => {
  const said = execFileSync('python3', ['-c', TERMINAL, process.execPath, BIN, 'top', '--source', 'demo'], {
    encoding: 'utf8',
    timeout: 30_000,
  })
  expect(said).toMatch(/^0\n/)
  expect(said).toContain('SIMULATED')
  // Into the second screen, and back.
  expect(said.indexOf('\u001b[?1049h')).toBeGreaterThan(0)
  expect(said.lastIndexOf('\u001b[?1049l')).toBeGreaterThan(said.lastIndexOf('\u001b[?1049h'))
})

it('says that it needs a terminal, and what to use instead', async () => {
  for (const args of [[], ['top']]) {
    const { code, stderr } = await run(args)
    expect(code).toBe(2)
    expect(stderr).toMatch(/needs a terminal.*\n.*gpuwarden status.*gpuwarden monitor/)
  }
})

it('prints one frame as text', async () => {
  const { code, stdout } = await run(['top', '--once', '--source', 'demo'], { COLUMNS: '100', LINES: '30', GPUWARDEN_SERVER_PORT: '1' })
  expect(code).toBe(0)
  expect(stdout).toContain('SIMULATED')
  expect(stdout).toContain('COMMAND')
  expect(stdout).not.toContain('\u001b')
  for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(100)
})

it('refuses what makes no sense', async () => {
  for (const args of [
    ['--theme', 'pink'],
    ['--connect', 'http://['],
  ])
    expect((await run(['top', ...args])).code).toBe(2)
})
