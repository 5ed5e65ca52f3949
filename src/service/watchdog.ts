/** Heartbeats for systemd. Node.js has no Unix datagram sockets, so systemd's own tool sends them. */
import { spawn } from 'node:child_process'

export interface WatchdogOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly pid: number
  /** Called once, when no heartbeat could be sent. */
  readonly onFailure: (reason: string) => void
}

/** How long systemd waits for a heartbeat of this process, in milliseconds; null when it does not. */
export function watchdogMs({ env, pid }: Pick<WatchdogOptions, 'env' | 'pid'>): number | null {
  const microseconds = Number(env.WATCHDOG_USEC)
  if (!env.NOTIFY_SOCKET || !Number.isFinite(microseconds) || microseconds <= 0) return null
  return env.WATCHDOG_PID === undefined || Number(env.WATCHDOG_PID) === pid ? microseconds / 1000 : null
}

/** A timer of this event loop: when the loop hangs, the heartbeats stop and systemd restarts the service. */
export function startWatchdog(options: WatchdogOptions): () => void {
  const limitMs = watchdogMs(options)
  if (limitMs === null) return () => undefined
  let isReported = false
  const report = (reason: string) => {
    if (!isReported) options.onFailure(reason)
    isReported = true
  }
  const sign = () => notify('WATCHDOG=1', options.env, report)
  sign()
  const timer = setInterval(sign, limitMs / 3)
  timer.unref()
  return () => clearInterval(timer)
}

export function notify(message: string, env: WatchdogOptions['env'], onFailure: (reason: string) => void): void {
  const child = spawn('systemd-notify', [message], { env: { ...env }, stdio: ['ignore', 'ignore', 'pipe'] })
  let text = ''
  child.stderr.on('data', (data) => {
    text += data
  })
  child.once('error', (error) => onFailure(`systemd-notify could not be started: ${error.message}`))
  child.once('close', (code) => {
    if (code !== 0 && code !== null) onFailure(`systemd-notify ended with ${code}: ${text.trim()}`)
  })
}
