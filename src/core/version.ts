import { readFileSync } from 'node:fs'

/** One place for the version: package.json, which lies beside both src/ and dist/. */
export const VERSION: string = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version
