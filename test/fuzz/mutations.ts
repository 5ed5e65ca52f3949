/** Bytes as a broken disk, a foreign program or an attacker would write them: examples with damage, and pure chance. */
import fc from 'fast-check'

/** What parsers stumble over. */
const ODDITIES = [
  ...['', '\0', '\n', '\r\n', '{', '}', '[', ']', '"', ',', ':', '\\', '\u009b31m', '\u001b[2J', '\u2028', '\ud800', '�'],
  ...['1e300', '-1e300', '1e999', '9007199254740993', '-1', '0.5', 'NaN', '-Infinity', 'null', 'true', '""', '{}', '[]', '[[[[[[[['],
  ...[
    '__proto__',
    'constructor',
    '"__proto__":{"a":1},',
    '../../etc/passwd',
    '%00',
    '%',
    '&&&',
    '?',
    '#',
    '*a',
    '&a',
    '<<: *a',
    '!!js/function x',
  ],
  ...['2026-01-01T00:00:00.000Z', '+275760-09-13T00:00:00.001Z', '0000-00-00', 'a'.repeat(9000), '['.repeat(3000), '9'.repeat(400)],
].map((text) => Buffer.from(text))

interface Mutation {
  readonly kind: 'flip' | 'cut' | 'drop' | 'double' | 'insert' | 'value' | 'random'
  readonly at: number
  readonly length: number
  readonly byte: number
  readonly odd: Buffer
}

/** Evenly: fast-check would prefer the beginning of the input and of each list. */
const mutation: fc.Arbitrary<Mutation> = fc.noBias(
  fc.record({
    kind: fc.constantFrom('flip', 'cut', 'drop', 'double', 'insert', 'value', 'value', 'value', 'random'),
    at: fc.nat({ max: 9999 }).map((part) => part / 10_000),
    length: fc.integer({ min: 1, max: 64 }),
    byte: fc.nat({ max: 255 }),
    odd: fc.constantFrom(...ODDITIES),
  }),
)

function applied(bytes: Buffer, { kind, at, length, byte, odd }: Mutation): Buffer {
  const from = Math.floor(at * bytes.length)
  const [before, piece, after] = [bytes.subarray(0, from), bytes.subarray(from, from + length), bytes.subarray(from + length)]
  if (kind === 'cut') return before
  if (kind === 'drop') return Buffer.concat([before, after])
  if (kind === 'double') return Buffer.concat([before, piece, piece, after])
  if (kind === 'value') {
    // The next word, number or quoted text as a whole.
    const found = /"[^"\n]*"|[\w.+-]+/.exec(bytes.toString('latin1', from))
    if (!found) return bytes
    const start = from + found.index
    return Buffer.concat([bytes.subarray(0, start), odd, bytes.subarray(start + found[0].length)])
  }
  if (kind === 'insert') return Buffer.concat([before, odd, piece, after])
  if (kind === 'random') return Buffer.concat([before, Buffer.alloc(piece.length, byte), after])
  return Buffer.concat([before, Buffer.from(piece.map((one, index) => (index === 0 ? one ^ byte : one))), after])
}

/** Mostly examples with one to four damages; sometimes nothing but chance. */
export function damaged(examples: readonly (string | Uint8Array)[]): fc.Arbitrary<Buffer> {
  const whole = fc.noBias(fc.constantFrom(...examples.map((one) => Buffer.from(one as string))))
  const broken = fc
    .tuple(whole, fc.array(mutation, { minLength: 1, maxLength: 4, size: 'max' }))
    .map(([bytes, list]) => list.reduce(applied, bytes))
  const chance = fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes))
  return fc.oneof({ arbitrary: broken, weight: 9 }, { arbitrary: chance, weight: 1 })
}
