import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Method, route } from '../core/route.ts'
import { createRouteTable, pathOf } from './route-table.ts'

const at = (method: Method, path: string) => route({ method, path, summary: '', answer: z.unknown(), handler: () => null })
const find = createRouteTable([
  at('GET', '/'),
  at('GET', '/runs'),
  at('POST', '/runs'),
  at('GET', '/runs/latest'),
  at('GET', '/runs/:id'),
  at('DELETE', '/runs/:id/ranks/:rank'),
])
const found = (method: string, path: string) => {
  const one = find(method, path)
  return one && [one.route?.path ?? one.methods, one.params]
}

describe('the table of routes', () => {
  it.each([
    ['GET', '/', ['/', {}]],
    ['HEAD', '/runs', ['/runs', {}]],
    ['POST', '/runs', ['/runs', {}]],
    ['GET', '/runs/latest', ['/runs/latest', {}]],
    ['GET', '/runs/a%2Fb%20c', ['/runs/:id', { id: 'a/b c' }]],
    ['GET', '/runs/%2525', ['/runs/:id', { id: '%25' }]],
    ['GET', '/runs/%E0%A4%A', ['/runs/:id', { id: '%E0%A4%A' }]],
    ['GET', '/runs/__proto__', ['/runs/:id', { id: '__proto__' }]],
    ['DELETE', '/runs/r/ranks/1', ['/runs/:id/ranks/:rank', { id: 'r', rank: '1' }]],
    ['PUT', '/runs', [['GET', 'POST'], {}]],
    ['GET', '/runs/r/ranks/1', [['DELETE'], { id: 'r', rank: '1' }]],
    ['GET', '/runs/', null],
    ['GET', '/runs//ranks/1', null],
    ['GET', '//runs', null],
    ['GET', '/RUNS', null],
    ['GET', '', null],
    ['OPTIONS', '*', null],
  ])('%s %s', (method, path, expected) => {
    expect(found(method, path)).toEqual(expected)
  })
})

describe('the path of a request line', () => {
  it.each([
    ['/a?b=/c?d', '/a'],
    ['http://box:4780/a/b?c', '/a/b'],
    ['*', '*'],
    ['//evil.com/a', '//evil.com/a'],
    ['', ''],
  ])('of %s is %s', (target, path) => {
    expect(pathOf(target)).toBe(path)
  })
})
