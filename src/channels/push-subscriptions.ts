/** Browsers that asked for pushes, and the key pair they know this agent by: two small files in the alerts' folder. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { makeFolderSync } from '../make-folder.ts'
import { isPrivateHost } from './public-host.ts'
import { generatePushKeys, type PushKeys } from './webpush-encryption.ts'

const MOST_SUBSCRIPTIONS = 64

const point = z.string().refine((text) => {
  const raw = Buffer.from(text, 'base64url')
  return raw.length === 65 && raw[0] === 4
}, 'expected a P-256 point')
const authSecret = z.string().refine((text) => Buffer.from(text, 'base64url').length === 16, 'expected 16 bytes')

/** What PushSubscription.toJSON() gives in the browser. */
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
  /** For tests, whose push services are here: plain HTTP and private addresses. */
  readonly allowsInside: boolean
  #keys: PushKeys | null = null
  #all: PushSubscription[] | null = null
  /** Files that could not be read and were set aside. */
  readonly problems: string[] = []

  constructor(dir: string, { allowsInside = false }: { allowsInside?: boolean } = {}) {
    this.#dir = dir
    this.allowsInside = allowsInside
  }

  /** The pair is made at the first call: browsers need its public half to subscribe. */
  keys(): PushKeys {
    this.#keys ??= this.#read('push-keys.json', keysSchema)
    if (this.#keys === null) {
      this.#keys = generatePushKeys()
      this.#write('push-keys.json', this.#keys)
    }
    return this.#keys
  }

  list(): readonly PushSubscription[] {
    this.#all ??= this.#read('push-subscriptions.json', z.array(subscriptionSchema)) ?? []
    return this.#all
  }

  /** Takes what the browser gave; says why not when it is not usable. */
  add(candidate: unknown): { readonly ok: true } | { readonly ok: false; readonly reason: string } {
    const parsed = subscriptionSchema.safeParse(candidate)
    if (!parsed.success) return { ok: false, reason: `not a push subscription: ${parsed.error.issues[0]?.message ?? ''}` }
    const { protocol, hostname, username, password } = new URL(parsed.data.endpoint)
    if (!this.allowsInside && (protocol !== 'https:' || username !== '' || password !== ''))
      return { ok: false, reason: 'not a push subscription: expected an endpoint that begins with https://' }
    if (!this.allowsInside && isPrivateHost(hostname))
      return { ok: false, reason: 'not a push subscription: its endpoint is in a private network, expected a push service on the internet' }
    const others = this.list().filter((known) => known.endpoint !== parsed.data.endpoint)
    if (others.length >= MOST_SUBSCRIPTIONS)
      return { ok: false, reason: `there are ${MOST_SUBSCRIPTIONS} subscriptions already: remove one first` }
    this.#save([...others, parsed.data])
    return { ok: true }
  }

  remove(endpoint: string): boolean {
    const left = this.list().filter((known) => known.endpoint !== endpoint)
    if (left.length === this.list().length) return false
    this.#save(left)
    return true
  }

  #save(all: PushSubscription[]): void {
    this.#write('push-subscriptions.json', all)
    this.#all = all
  }

  #read<T>(name: string, schema: z.ZodType<T>): T | null {
    const path = join(this.#dir, name)
    let text: string
    try {
      text = readFileSync(path, 'utf8')
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw new Error(`${path} cannot be read: ${(cause as Error).message}`, { cause })
    }
    const parsed = schema.safeParse(jsonOf(text))
    if (parsed.success) return parsed.data
    renameSync(path, `${path}.corrupt`)
    this.problems.push(`${path} is not what was written there; it was set aside as ${name}.corrupt, and browsers have to subscribe again`)
    return null
  }

  /** Whole or not at all, and for the owner's eyes only. */
  #write(name: string, value: unknown): void {
    makeFolderSync(this.#dir)
    const path = join(this.#dir, name)
    writeFileSync(`${path}.tmp`, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600, flush: true })
    renameSync(`${path}.tmp`, path)
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
