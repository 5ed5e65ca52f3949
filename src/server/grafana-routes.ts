/** The Grafana dashboards that come with the package, for download. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { type Route, route } from '../core/route.ts'

const PATH = '/api/v1/grafana'

interface Board {
  readonly name: string
  readonly title: string
  readonly body: string
}

/** The files are read at the first request; no path from a request reaches a file. */
export function grafanaRoutes(folder: string): readonly Route[] {
  let reading: Promise<ReadonlyMap<string, Board>> | null = null
  const boards = () => {
    reading ??= readBoards(folder).catch((error: unknown) => {
      reading = null
      throw error
    })
    return reading
  }
  return [
    route({
      method: 'GET',
      path: PATH,
      summary: 'The Grafana dashboards that come with gpuwarden',
      query: z.strictObject({}),
      answer: z.strictObject({ files: z.array(z.strictObject({ name: z.string(), title: z.string(), url: z.string() })) }),
      handler: async () => ({ files: [...(await boards()).values()].map(({ name, title }) => ({ name, title, url: `${PATH}/${name}` })) }),
    }),
    route({
      method: 'GET',
      path: `${PATH}/:name`,
      summary: 'One of the Grafana dashboards, to import into Grafana',
      query: z.strictObject({}),
      answer: z.record(z.string(), z.unknown()),
      errors: ['not_found'],
      async handler({ params: { name = '' }, refuse, reply }) {
        const board = (await boards()).get(name)
        if (!board) return refuse('not_found', 'There is no such Grafana dashboard.', `See ${PATH}.`)
        return reply({ body: board.body, headers: { 'content-disposition': `attachment; filename="${board.name}"` } })
      },
    }),
  ]
}

async function readBoards(folder: string): Promise<ReadonlyMap<string, Board>> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException): string[] => {
    // A build without the package's other files.
    if (error.code === 'ENOENT') return []
    throw error
  })
  const boards = new Map<string, Board>()
  for (const name of names.filter((one) => /^[\w-]+\.json$/.test(one)).sort()) {
    const body = await readFile(join(folder, name), 'utf8')
    const { title } = JSON.parse(body) as { title?: unknown }
    boards.set(name, { name, title: typeof title === 'string' ? title : name, body })
  }
  return boards
}
