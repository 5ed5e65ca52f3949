/** Describes the routes in OpenAPI 3.1, from the same table that serves them. */
import { z } from 'zod'
import type { Route } from '../core/route.ts'
import { ERRORS, type ErrorCode } from '../core/route-errors.ts'
import { SCHEMAS } from './schemas.ts'

const JSON_TYPE = 'application/json'
const CHECKS: readonly ErrorCode[] = ['forbidden_host', 'cross_site', 'internal']
const TOKEN_CHECKS: readonly ErrorCode[] = ['missing_token', 'wrong_token', 'too_many_attempts']
const QUERY_CHECKS: readonly ErrorCode[] = ['missing_parameter', 'unknown_parameter', 'invalid_parameter']
const BODY_CHECKS: readonly ErrorCode[] = ['invalid_body', 'body_too_large', 'unsupported_media_type']

type Json = Record<string, unknown>

export function openApiDocument(routes: readonly Route[], version: string): Json {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(SCHEMAS)) registry.add(schema, { id })
  for (const route of routes) {
    if (isJson(route) && !registry.has(route.answer)) registry.add(route.answer, { id: `${operationId(route)}Answer` })
    if (route.body && !registry.has(route.body)) registry.add(route.body, { id: `${operationId(route)}Body` })
  }
  const { schemas } = z.toJSONSchema(registry, {
    uri: reference,
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => open(jsonSchema),
  })
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, registry) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'gpuwarden',
      version,
      description: 'GPUs of one host and the training on them. Clients must ignore fields that they do not know.',
    },
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, without(schema, '$schema', '$id')])),
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'gpuwarden_session_4780',
          description: 'From POST /api/v1/session; the name ends with the port',
        },
      },
    },
  }
}

type Registry = ReturnType<typeof z.registry<{ id: string }>>

function operation(route: Route, registry: Registry): Json {
  const type = route.answerType ?? JSON_TYPE
  const answer = isJson(route) ? componentOf(route.answer, registry) : textSchema(route.answer)
  const errors = [
    ...CHECKS,
    ...(route.open ? [] : TOKEN_CHECKS),
    ...(route.query ? QUERY_CHECKS : []),
    ...(route.body ? BODY_CHECKS : []),
    ...(route.errors ?? []),
  ]
  return {
    operationId: operationId(route),
    summary: route.summary,
    parameters: [...pathParameters(route.path), ...queryParameters(route.query)],
    ...(route.body ? { requestBody: requestBody(route, route.body, registry) } : {}),
    responses: { 200: { description: 'The answer', content: { [type]: { schema: answer } } }, ...errorResponses(errors) },
    ...(route.open ? {} : { security: [{}, { token: [] }, { session: [] }] }),
  }
}

function textSchema({ description }: z.ZodType): Json {
  return { type: 'string', ...(description === undefined ? {} : { description }) }
}

function requestBody(route: Route, body: z.ZodType, registry: Registry): Json {
  return { required: true, content: { [route.bodyAs === 'text' ? 'text/plain' : JSON_TYPE]: { schema: componentOf(body, registry) } } }
}

/** One response per status, with its codes in the description. */
function errorResponses(codes: readonly ErrorCode[]): Json {
  const responses: Record<string, Json> = {}
  for (const status of [...new Set(codes.map((code) => ERRORS[code].status))].sort()) {
    const description = codes.filter((code) => ERRORS[code].status === status).map((code) => `${code}: ${ERRORS[code].meaning}`)
    responses[status] = { description: description.join(' '), content: { [JSON_TYPE]: { schema: { $ref: reference('Error') } } } }
  }
  return responses
}

function pathParameters(path: string): Json[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: { type: 'string' } }))
}

function queryParameters(query: z.ZodType | undefined): Json[] {
  if (!query) return []
  const { properties = {}, required = [] } = z.toJSONSchema(query, { io: 'input', unrepresentable: 'any' })
  return Object.entries(properties).map(([name, schema]) => {
    const description = typeof schema === 'object' ? schema.description : undefined
    return { name, in: 'query', required: required.includes(name), ...(description ? { description } : {}), schema }
  })
}

function componentOf(schema: z.ZodType, registry: Registry): Json {
  const id = registry.get(schema)?.id
  if (id === undefined) throw new Error('openapi: a schema was not registered before it was referred to')
  return { $ref: reference(id) }
}

function operationId({ method, path }: Route): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

function isJson(route: Route): boolean {
  return route.answerType === undefined
}

function reference(id: string): string {
  return `#/components/schemas/${id}`
}

function open(schema: { additionalProperties?: unknown }): void {
  if (schema.additionalProperties === false) delete schema.additionalProperties
}

function without(object: object, ...names: readonly string[]): Json {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))
}
