/** Where the token comes from: the configuration, or a file that only its owner can read. */
import { randomBytes } from 'node:crypto'
import { open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { EXIT, Failure } from '../core/failure.ts'
import type { Log } from '../core/kinds.ts'
import { makeFolder } from '../core/make-folder.ts'
import { isLoopback } from './host-check.ts'
import type { ServerSettings } from './settings.ts'

const TOKEN_BYTES = 32
const LARGEST_FILE_BYTES = 4096
const SHORTEST_TOKEN = 8

/** The token that requests must send; null when none is needed. Throws when the server would be open to others without one. */
export async function loadToken(settings: ServerSettings, log: Log): Promise<string | null> {
  const { 'server.token': token, 'server.token_file': file, 'server.host': host } = settings
  if (token !== null && file !== null) {
    throw refusal('server.token and server.token_file are both set: remove one of them (--token or --token-file).')
  }
  if (token !== null) return checked(token, 'server.token')
  if (file !== null) return readOrMake(file, log)
  if (isLoopback(host)) return null
  throw refusal(
    `server.host is ${host}, which other machines can reach, and no token is set: give --token-file <file> (it is created when it does not exist) ` +
      'or --token <token>, or listen on 127.0.0.1.',
  )
}

async function readOrMake(file: string, log: Log): Promise<string> {
  const made = await makeFile(file)
  if (made === null) return readFile(file, log)
  log.info({ file }, 'created a token file with a new random token')
  return made
}

async function makeFile(file: string): Promise<string | null> {
  try {
    await makeFolder(dirname(file), 0o700)
    // `wx` fails on anything that exists, links too, so that nobody can put a file in our way.
    const handle = await open(file, 'wx', 0o600)
    try {
      const token = randomBytes(TOKEN_BYTES).toString('base64url')
      await handle.writeFile(`${token}\n`)
      return token
    } finally {
      await handle.close()
    }
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && syscall === 'open') return null
    throw refusal(`server.token_file ${file} cannot be created: choose a folder that you can write to.`, { cause: error })
  }
}

async function readFile(file: string, log: Log): Promise<string> {
  const found = await stat(file).catch(() => null)
  if (found && !found.isFile())
    throw refusal(`server.token_file ${file} must be a regular file of at most ${LARGEST_FILE_BYTES} bytes that holds one token.`)
  const handle = await open(file, 'r').catch((error: unknown) => {
    throw refusal(`server.token_file ${file} cannot be read: make it readable for the user that runs gpuwarden.`, { cause: error })
  })
  try {
    const { mode, uid, size, isFile } = await handle.stat().then((stat) => ({ ...stat, isFile: stat.isFile() }))
    if (!isFile || size > LARGEST_FILE_BYTES) {
      throw refusal(`server.token_file ${file} must be a regular file of at most ${LARGEST_FILE_BYTES} bytes that holds one token.`)
    }
    // A mounted secret belongs to root and is read through its group; our own files need no group.
    const forbidden = uid === process.getuid?.() ? 0o077 : 0o037
    if (process.platform !== 'win32' && (mode & forbidden) !== 0) {
      log.warn({ file, mode: (mode & 0o777).toString(8) }, 'the token file is open to other users')
      throw refusal(
        `server.token_file ${file} can be read or changed by other users (mode ${(mode & 0o777).toString(8)}): run \`chmod 600 ${file}\`, ` +
          'and delete the file to get a new token, since others may already know this one.',
      )
    }
    return checked((await handle.readFile('utf8')).trim(), `server.token_file ${file}`)
  } finally {
    await handle.close()
  }
}

/** Names the place, never the token. */
function checked(token: string, place: string): string {
  if (token.length >= SHORTEST_TOKEN && /^[\x21-\x7e]+$/.test(token)) return token
  throw refusal(`${place} must hold one token of at least ${SHORTEST_TOKEN} printable ASCII characters without spaces.`)
}

function refusal(message: string, options: { readonly cause?: unknown } = {}): Failure {
  return new Failure(message, { exitCode: EXIT.usage, ...options })
}
