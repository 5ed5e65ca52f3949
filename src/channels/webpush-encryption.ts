/** Web push on the wire: a body only the browser can read (RFC 8291), and a signed sender (RFC 8292). */
import { createCipheriv, createECDH, createPrivateKey, hkdfSync, randomBytes, sign } from 'node:crypto'

const RECORD_SIZE = 4096
/** Push services accept 4096 bytes, minus headers, padding and tag. */
export const MOST_PAYLOAD_BYTES = 3900

export interface PushKeys {
  /** Uncompressed point and scalar of P-256, base64url. */
  readonly publicKey: string
  readonly privateKey: string
}

export interface SubscriberKeys {
  readonly p256dh: string
  readonly auth: string
}

/** Only tests give these. */
interface Chosen {
  readonly salt: Buffer
  readonly senderPrivateKey: Buffer
}

const bytes = (text: string) => Buffer.from(text, 'base64url')
const derive = (ikm: Buffer, salt: Buffer, info: Buffer, length: number) => Buffer.from(hkdfSync('sha256', ikm, salt, info, length))

export function encryptPush(payload: Buffer, subscriber: SubscriberKeys, chosen?: Chosen): Uint8Array<ArrayBuffer> {
  if (payload.length > MOST_PAYLOAD_BYTES) throw new Error(`a push holds at most ${MOST_PAYLOAD_BYTES} bytes, got ${payload.length}`)
  const receiver = bytes(subscriber.p256dh)
  const sender = createECDH('prime256v1')
  if (chosen) sender.setPrivateKey(chosen.senderPrivateKey)
  else sender.generateKeys()
  const salt = chosen?.salt ?? randomBytes(16)
  const shared = sender.computeSecret(receiver)
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), receiver, sender.getPublicKey()])
  const material = derive(shared, bytes(subscriber.auth), info, 32)
  const key = derive(material, salt, Buffer.from('Content-Encoding: aes128gcm\0'), 16)
  const nonce = derive(material, salt, Buffer.from('Content-Encoding: nonce\0'), 12)
  const cipher = createCipheriv('aes-128-gcm', key, nonce)
  // 2 ends the last record.
  const sealed = Buffer.concat([cipher.update(payload), cipher.update(Buffer.of(2)), cipher.final(), cipher.getAuthTag()])
  const header = Buffer.alloc(21)
  salt.copy(header)
  header.writeUInt32BE(RECORD_SIZE, 16)
  header.writeUInt8(65, 20)
  return new Uint8Array(Buffer.concat([header, sender.getPublicKey(), sealed]))
}

export function generatePushKeys(): PushKeys {
  const pair = createECDH('prime256v1')
  pair.generateKeys()
  return { publicKey: pair.getPublicKey('base64url'), privateKey: pair.getPrivateKey().toString('base64url') }
}

/** The Authorization header for one push service. `subject`: contact for its operator. */
export function vapidAuthorization(endpoint: string, subject: string, keys: PushKeys, nowSeconds: number): string {
  const point = bytes(keys.publicKey)
  const jwk = {
    kty: 'EC',
    crv: 'P-256',
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
    // ECDH drops leading zeros of a scalar, and JWK needs all 32 bytes.
    d: Buffer.concat([Buffer.alloc(32), bytes(keys.privateKey)])
      .subarray(-32)
      .toString('base64url'),
  }
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { aud: new URL(endpoint).origin, exp: nowSeconds + 12 * 3600, sub: subject }
  const unsigned = `${encode({ typ: 'JWT', alg: 'ES256' })}.${encode(claims)}`
  const signature = sign('sha256', Buffer.from(unsigned), { key: createPrivateKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' })
  return `vapid t=${unsigned}.${signature.toString('base64url')}, k=${keys.publicKey}`
}
