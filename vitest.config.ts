import { defineConfig } from 'vitest/config'

/** `npm test` needs Node.js, python3 and a C compiler; `npm run test:full` runs what needs more, in test/full/. */
const isFull = process.env.GPUWARDEN_TEST_FULL === '1'
const results = process.env.GPUWARDEN_TEST_RESULTS

export default defineConfig({
  test: {
    include: isFull ? ['test/full/**/*.test.ts'] : ['src/**/*.test.ts', 'web/src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: isFull ? ['node_modules/**'] : ['test/full/**', 'node_modules/**'],
    globalSetup: ['test/setup/build.ts'],
    setupFiles: ['test/setup/fast-check.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: results ? ['default', ['json', { outputFile: `${results}/${isFull ? 'full' : 'plain'}.json` }]] : ['default'],
  },
})
