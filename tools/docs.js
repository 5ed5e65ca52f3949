// Writes the generated parts of docs/ anew: npm run docs. A part stands between <!-- made: NAME --> and <!-- /made -->, or is a whole file.
// test/generated-docs.test.ts says when one is out of date.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { runnerImport } from 'vite'
import { licensesPage } from './licenses.js'
import { LAYERS, layerOf, roomGraph } from './rooms.js'

const inDocs = (name) => fileURLToPath(new URL(`../docs/${name}`, import.meta.url))

/** One row per generated part: the file, the name of the part (null: the whole file), and what makes its text. */
export const PARTS = [
  { file: 'architecture.md', part: 'rooms', make: roomTable },
  { file: 'detectors.md', part: null, make: detectorsPage },
  { file: 'licenses.md', part: null, make: licensesPage },
]

async function detectorsPage() {
  const { module } = await runnerImport(fileURLToPath(new URL('detectors-page.ts', import.meta.url)))
  return module.detectorsPage()
}

/** A row per room, from the top of the house down: what it imports besides core. */
function roomTable() {
  const graph = roomGraph()
  const rooms = [...graph.keys()].sort((a, b) => layerOf(b) - layerOf(a) || a.localeCompare(b))
  const rows = rooms.map((room) => {
    const layer = LAYERS[layerOf(room)]
    const imports = graph.get(room).filter((one) => one !== 'core')
    const name = room === 'entries' ? '`cli.ts`, `index.ts`' : `\`${room}/\``
    return `| ${layer} | ${name} | ${imports.map((one) => `\`${one}\``).join(', ') || (room === 'core' ? 'nothing' : 'core alone')} |`
  })
  return ['| layer | folder | imports, besides core |', '|---|---|---|', ...rows].join('\n')
}

/** The text that the file should have. */
export async function made({ file, part, make }) {
  const content = await make()
  if (part === null) return content
  const text = readFileSync(inDocs(file), 'utf8')
  const [open, close] = [`<!-- made: ${part} -->`, '<!-- /made -->']
  const from = text.indexOf(open)
  const to = text.indexOf(close, from)
  if (from < 0 || to < 0) throw new Error(`docs/${file} has no part ${open} … ${close}`)
  return `${text.slice(0, from + open.length)}\n${content}\n${text.slice(to)}`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) for (const one of PARTS) writeFileSync(inDocs(one.file), await made(one))
