/** The layers of a run's model, as its SDK looked at them. */
import { z } from 'zod'
import { LAYER_FIGURE_NAMES, type LAYER_FIGURES, standouts } from '../core/layer-figures.ts'
import { type Route, type RouteContext, route } from '../core/route.ts'
import { unknownRun, unlessStuck } from './reading-routes.ts'
import { reading } from './schemas.ts'
import type { Training } from './training-contract.ts'

const figure = z.enum(LAYER_FIGURE_NAMES as [keyof typeof LAYER_FIGURES, ...(keyof typeof LAYER_FIGURES)[]])

const layersQuery = z.strictObject({
  rank: z.coerce.number().int().min(0).optional().describe('By default the lowest'),
  figure: figure.default('gradient_norm'),
})

const layersAnswer = z.object({
  id: z.string(),
  rank: z.number().nullable(),
  ranks: z.array(z.number()).describe('Ranks that sent figures of their layers: the lowest four'),
  figure,
  figures: z.array(figure).describe('What this run has'),
  layers: z.array(z.string()).describe('In the order of the model'),
  steps: z.array(z.number()).describe('When they were looked at'),
  at: z.array(z.number()),
  stride: z.number().describe('Every so many looks are kept; all in which a value was not finite'),
  data: z.array(z.array(reading)).describe('By layer, then by step; NaN: not finite'),
  standouts: z
    .array(z.object({ layer: z.string(), figure, step: z.number(), value: reading, reason: z.string() }))
    .describe('Layers that differ from the others, worst first'),
})

export function layerRoutes(training: Training): readonly Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/v1/runs/:id/layers',
      summary: 'One figure of the layers of a model, by layer and step, and the layers that stand out (gpuwarden.watch)',
      query: layersQuery,
      answer: layersAnswer,
      errors: ['unknown_run', 'invalid_parameter', 'unavailable'],
      handler: (context) =>
        unlessStuck(context, async () => {
          const found = await training.find(context.params.id ?? '')
          return found ? answer(context, found.run.id, found.progress.layers) : unknownRun(context)
        }),
    }),
  ] as readonly Route[]
}

type History = NonNullable<Awaited<ReturnType<Training['find']>>>['progress']['layers']

function answer({ query, refuse }: RouteContext, id: string, history: History): unknown {
  const { rank: asked, figure: name } = query as z.infer<typeof layersQuery>
  const { ranks } = history
  const rank = asked ?? ranks[0] ?? null
  const course = rank === null ? null : history.course(rank)
  if (course === null && asked !== undefined)
    return refuse(
      'invalid_parameter',
      `Rank ${asked} has sent no figures of its layers.`,
      ranks.length === 0 ? 'gpuwarden.watch(model) in the program sends them.' : `These ranks have: ${ranks.join(', ')}.`,
    )
  const { layers, steps, at, stride, values } = course ?? { layers: [], steps: [], at: [], stride: 1, values: {} }
  const figures = LAYER_FIGURE_NAMES.filter((one) => values[one] !== undefined)
  const data = values[name] ?? layers.map(() => steps.map(() => null))
  return { id, rank, ranks, figure: name, figures, layers, steps, at, stride, data, standouts: course ? standouts(course) : [] }
}
