import { readFileSync } from 'node:fs'

/** From package.json, next to both src/ and dist/. */
export const VERSION: string = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version
