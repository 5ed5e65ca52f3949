/** How much the client wants each media type or encoding, from an Accept or Accept-Encoding header. */
export function qualities(header: string | undefined): ReadonlyMap<string, number> {
  const wanted = new Map<string, number>()
  if (header === undefined) return wanted
  for (const part of header.split(',')) {
    const [name = '', ...parameters] = part.split(';')
    const key = name.trim().toLowerCase()
    if (key === '') continue
    let quality = 1
    for (const parameter of parameters) {
      const [attribute = '', value = ''] = parameter.split('=')
      if (attribute.trim().toLowerCase() === 'q') quality = Number(value.trim())
    }
    if (!(quality >= 0 && quality <= 1)) quality = 0
    wanted.set(key, Math.max(quality, wanted.get(key) ?? 0))
  }
  return wanted
}

export type MetricsFormat = 'text' | 'openmetrics'

/** OpenMetrics only for clients that name it and do not prefer plain text. */
export function metricsFormat(accept: string | undefined): MetricsFormat {
  const wanted = qualities(accept)
  const open = wanted.get('application/openmetrics-text') ?? 0
  return open > 0 && open >= (wanted.get('text/plain') ?? 0) ? 'openmetrics' : 'text'
}

export type Encoding = 'gzip' | 'deflate'

export function encodingFor(acceptEncoding: string | undefined): Encoding | null {
  const wanted = qualities(acceptEncoding)
  const any = wanted.get('*') ?? 0
  const gzip = wanted.get('gzip') ?? any
  const deflate = wanted.get('deflate') ?? any
  if (gzip === 0 && deflate === 0) return null
  return gzip >= deflate ? 'gzip' : 'deflate'
}

export type FileEncoding = 'br' | 'gzip'

/** For what is compressed once and kept: the smallest encoding, unless the client prefers another. */
export function fileEncodingFor(acceptEncoding: string | undefined): FileEncoding | null {
  const wanted = qualities(acceptEncoding)
  const any = wanted.get('*') ?? 0
  const brotli = wanted.get('br') ?? any
  const gzip = wanted.get('gzip') ?? any
  if (brotli === 0 && gzip === 0) return null
  return brotli >= gzip ? 'br' : 'gzip'
}
