/** Python plays systemd: a datagram socket that writes down what it is told. */
import { spawn } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { temporaryFolder, until } from './program.ts'

export interface PretendSystemd {
  /** For NOTIFY_SOCKET. */
  readonly socket: string
  /** Everything that was told so far. */
  said(): string
  stop(): void
}

/** Ends with the test that it was called in, if not before. */
export async function pretendSystemd(folder = temporaryFolder()): Promise<PretendSystemd> {
  const socket = join(folder, 'notify')
  const script = `import socket,os
s=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM); s.bind(${JSON.stringify(socket)}); print("ready",flush=True)
while True:
  m,fds,_,_=socket.recv_fds(s,4096,4); [os.close(f) for f in fds]; print(m.decode(),flush=True)`
  const child = spawn('python3', ['-c', script], { stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill())
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data) => {
      text += data
    })
  await until('the socket is there', () => text.includes('ready'))
  chmodSync(socket, 0o777)
  return { socket, said: () => text, stop: () => child.kill() }
}
