/** Names of users: etc/passwd below the root, read again when it changed; then the machine's directory service (LDAP, SSSD). */
import { execFile } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { errorCode } from '../../core/system-file.ts'
import { parsePasswd } from './parse.ts'

/** Directory services rewrite the file seldom: there is no need to look more often. */
const CHECK_INTERVAL_MS = 5000
const ASK_AGAIN_MS = 10 * 60_000
const ASK_LIMIT_MS = 5000
const MOST_ASKED = 1024

export interface UsersOptions {
  readonly root: string
  /** Answers like `getent passwd UID`; null where there is no such service. */
  readonly ask?: ((uid: number, answer: (line: string | null) => void) => void) | null
}

export class Users {
  readonly #path: string
  readonly #ask: UsersOptions['ask']
  readonly #asked = new Map<number, { name: string | null; atMs: number }>()
  #names: ReadonlyMap<number, string> = new Map()
  #version = ''
  #checkAtMs = Number.NEGATIVE_INFINITY

  constructor({ root, ask = root === '/' ? askDirectory : null }: UsersOptions) {
    this.#path = join(root, 'etc/passwd')
    this.#ask = ask
  }

  /** null: nobody has a name for it, or the directory service has not answered yet. */
  nameOf(uid: number, nowMs: number): string | null {
    if (nowMs >= this.#checkAtMs) {
      this.#checkAtMs = nowMs + CHECK_INTERVAL_MS
      this.#refresh()
    }
    return this.#names.get(uid) ?? this.#fromDirectory(uid, nowMs)
  }

  #fromDirectory(uid: number, nowMs: number): string | null {
    const known = this.#asked.get(uid)
    if (this.#ask && (known === undefined || nowMs - known.atMs > ASK_AGAIN_MS) && this.#asked.size < MOST_ASKED) {
      this.#asked.set(uid, { name: known?.name ?? null, atMs: nowMs })
      this.#ask(uid, (line) => {
        this.#asked.set(uid, { name: line === null ? null : (parsePasswd(line).get(uid) ?? null), atMs: nowMs })
      })
    }
    return this.#asked.get(uid)?.name ?? null
  }

  #refresh(): void {
    try {
      const { mtimeMs, size, ino } = statSync(this.#path)
      const version = `${mtimeMs} ${size} ${ino}`
      if (version === this.#version) return
      this.#names = parsePasswd(readFileSync(this.#path, 'utf8'))
      this.#version = version
    } catch (error) {
      errorCode(error)
      this.#names = new Map()
      this.#version = ''
    }
  }
}

/** In the background: a directory server that does not answer must not hold up a sample. */
function askDirectory(uid: number, answer: (line: string | null) => void): void {
  execFile('getent', ['passwd', String(uid)], { timeout: ASK_LIMIT_MS, maxBuffer: 4096 }, (error, stdout) => answer(error ? null : stdout))
}
