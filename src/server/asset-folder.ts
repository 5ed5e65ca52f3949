/** The web UI's files, read once from a folder that is fixed at the start. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, gzip, constants as zlib } from 'node:zlib'
import type { FileEncoding } from './accept.ts'
import type { Asset, Assets } from './assets.ts'
import { COMPRESS_FROM_BYTES, isCompressible } from './send.ts'

const PAGE = '/index.html'
const HASHED = /^\/assets\/.*-[A-Za-z0-9_-]{8,}\.\w+$/
const FOR_EVER = 'public, max-age=31536000, immutable'
const ASK_AGAIN = 'no-cache'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.webmanifest': 'application/manifest+json; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.webp': 'image/webp',
  '.ico': 'image/x-icon',
  '.woff': 'font/woff',
  '.woff2': 'font/woff2',
  '.wasm': 'application/wasm',
}

/** 11 makes the web UI 5% smaller but takes twenty times as long, and the first visitor would wait. */
const BROTLI_QUALITY = 9

const brotli = promisify(brotliCompress)
const zip = promisify(gzip)

/** null: this folder has no page. The files are read at the first request, and never again. */
export function openAssetFolder(folder: string): Assets | null {
  if (!existsSync(join(folder, PAGE))) return null
  let table: ReadonlyMap<string, Asset> | null = null
  return (path) => {
    table ??= readTable(folder)
    return table.get(path === '/' ? PAGE : path) ?? null
  }
}

/** By the path of a request. Links are left out: they may lead anywhere. */
function readTable(folder: string): ReadonlyMap<string, Asset> {
  const table = new Map<string, Asset>()
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const file = join(entry.parentPath, entry.name)
    const path = `/${relative(folder, file).split(sep).join('/')}`
    table.set(path, toAsset(path, readFileSync(file)))
  }
  return table
}

function toAsset(path: string, body: Buffer): Asset {
  const type = TYPES[extname(path).toLowerCase()] ?? 'application/octet-stream'
  const isWorthIt = body.length > COMPRESS_FROM_BYTES && isCompressible(type)
  const kept = new Map<FileEncoding, Promise<Uint8Array | null>>()
  return {
    body,
    type,
    cache: HASHED.test(path) ? FOR_EVER : ASK_AGAIN,
    tag: createHash('sha256').update(body).digest('base64url').slice(0, 22),
    encoded(encoding) {
      if (!isWorthIt) return Promise.resolve(null)
      let made = kept.get(encoding)
      if (!made) {
        made = compress(body, encoding)
        kept.set(encoding, made)
      }
      return made
    },
  }
}

async function compress(body: Buffer, encoding: FileEncoding): Promise<Uint8Array | null> {
  const small =
    encoding === 'gzip'
      ? await zip(body, { level: 9 })
      : await brotli(body, { params: { [zlib.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY, [zlib.BROTLI_PARAM_SIZE_HINT]: body.length } })
  return small.length < body.length ? small : null
}
