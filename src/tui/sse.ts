export interface ServerEvent {
  readonly id: string | null
  readonly event: string
  readonly data: string
}

/** An event larger than this is not one of ours. */
const LARGEST = 16 * 1024 * 1024

export class EventReader {
  #rest = ''

  /** Throws when an event never ends. */
  feed(text: string): ServerEvent[] {
    this.#rest += text
    const events: ServerEvent[] = []
    for (;;) {
      const end = this.#rest.indexOf('\n\n')
      if (end < 0) break
      const event = parse(this.#rest.slice(0, end))
      if (event) events.push(event)
      this.#rest = this.#rest.slice(end + 2)
    }
    if (this.#rest.length > LARGEST) throw new Error(`expected server-sent events, got ${this.#rest.length} characters without an end`)
    return events
  }
}

function parse(block: string): ServerEvent | null {
  let id: string | null = null
  let event = 'message'
  const data: string[] = []
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    if (colon === 0) continue
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (name === 'id') id = value
    else if (name === 'event') event = value
    else if (name === 'data') data.push(value)
  }
  return data.length === 0 ? null : { id, event, data: data.join('\n') }
}
