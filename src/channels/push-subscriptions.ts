/** Browsers subscribed to web push, and the key pair they know this agent by: two small files in the alerts' folder. */
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { logLane } from '../core/disk-lane.ts'
import { KeptFile } from '../core/kept-file.ts'
import { readOwnFile } from '../core/system-file.ts'
import { isPrivateHost } from './public-host.ts'
import { generatePushKeys, type PushKeys } from './webpush-encryption.ts'

const MOST_SUBSCRIPTIONS = 64
const KEYS = 'push-keys.json'
const SUBSCRIPTIONS = 'push-subscriptions.json'
const OWNERS_ONLY = { mode: 0o600, folderMode: 0o777, flush: true }

const point = z.string().refine((text) => {
  const raw = Buffer.from(text, 'base64url')
  return raw.length === 65 && raw[0] === 4
}, 'expected a P-256 point')
const authSecret = z.string().refine((text) => Buffer.from(text, 'base64url').length === 16, 'expected 16 bytes')

/** What PushSubscription.toJSON() returns in the browser. */
const subscriptionSchema = z.object({
  endpoint: z
    .string()
    .max(2000)
    .refine((text) => URL.canParse(text), 'expected an address'),
  keys: z.object({ p256dh: point, auth: authSecret }),
})
const keysSchema = z.object({ publicKey: point, privateKey: z.string().min(1) })

export type PushSubscription = z.infer<typeof subscriptionSchema>

export class PushSubscriptions {
  readonly #dir: string
  /** For tests, whose push services are local: plain HTTP and private addresses. */
  readonly allowsInside: boolean
  readonly #keysFile: KeptFile
  readonly #file: KeptFile
  #keys: PushKeys | null = null
  #all: PushSubscription[] | null = null
  #isLoaded = false
  /** Files that could not be read and were set aside. */
  readonly problems: string[] = []

  constructor(dir: string, { allowsInside = false }: { allowsInside?: boolean } = {}) {
    this.#dir = dir
    this.#keysFile = new KeptFile(join(dir, KEYS), OWNERS_ONLY)
    this.#file = new KeptFile(join(dir, SUBSCRIPTIONS), OWNERS_ONLY)
    this.allowsInside = allowsInside
    this.#load()
  }

  /** Reads both files at the start, so that nobody waits for the disk later. What cannot be read is tried again when it is needed. */
  #load(): void {
    try {
      this.#keys ??= this.#read(KEYS, keysSchema)
      this.list()
      this.#isLoaded = true
    } catch (error) {
      if (!(error instanceof Error && error.cause !== undefined)) throw error
      this.#isLoaded = false
    }
  }

  /** The pair is made at the first call: browsers need its public half to subscribe. */
  async keys(): Promise<PushKeys> {
    if (!this.#isLoaded) this.#keys ??= this.#read(KEYS, keysSchema)
    if (this.#keys === null) {
      const made = generatePushKeys()
      this.#keys = made
      await logLane.patiently(() => this.#keysFile.save(() => textOf(made)))
    }
    return this.#keys
  }

  list(): readonly PushSubscription[] {
    this.#all ??= this.#read(SUBSCRIPTIONS, z.array(subscriptionSchema)) ?? []
    return this.#all
  }

  /** Adds the subscription that the browser made, or says why it cannot be used. */
  async add(candidate: unknown): Promise<{ readonly ok: true } | { readonly ok: false; readonly reason: string }> {
    const parsed = subscriptionSchema.safeParse(candidate)
    if (!parsed.success) return { ok: false, reason: `not a push subscription: ${parsed.error.issues[0]?.message ?? ''}` }
    const { protocol, hostname, username, password } = new URL(parsed.data.endpoint)
    if (!this.allowsInside && (protocol !== 'https:' || username !== '' || password !== ''))
      return { ok: false, reason: 'not a push subscription: expected an endpoint that begins with https://' }
    if (!this.allowsInside && isPrivateHost(hostname))
      return { ok: false, reason: 'not a push subscription: its endpoint is in a private network; expected a push service on the internet' }
    const others = this.list().filter((known) => known.endpoint !== parsed.data.endpoint)
    if (others.length >= MOST_SUBSCRIPTIONS)
      return { ok: false, reason: `there are already ${MOST_SUBSCRIPTIONS} subscriptions: remove one first` }
    await this.#save([...others, parsed.data])
    return { ok: true }
  }

  async remove(endpoint: string): Promise<boolean> {
    const left = this.list().filter((known) => known.endpoint !== endpoint)
    if (left.length === this.list().length) return false
    await this.#save(left)
    return true
  }

  /** Counts at once, even when it cannot be written: the browser has subscribed, or has gone. */
  async #save(all: PushSubscription[]): Promise<void> {
    this.#all = all
    await logLane.patiently(() => this.#file.save(() => textOf(this.#all)))
  }

  #read<T>(name: string, schema: z.ZodType<T>): T | null {
    const path = join(this.#dir, name)
    let text: string
    try {
      text = readOwnFile(path)
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw new Error(`${path} cannot be read: ${(cause as Error).message}`, { cause })
    }
    const parsed = schema.safeParse(jsonOf(text))
    if (parsed.success) return parsed.data
    renameSync(path, `${path}.corrupt`)
    this.problems.push(`${path} is damaged; it was set aside as ${name}.corrupt, and browsers must subscribe again`)
    return null
  }
}

function textOf(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
