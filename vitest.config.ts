import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

/** A file for the results as JSON, besides what is printed. */
const results = process.env.GPUWARDEN_TEST_RESULTS
const setupFiles = ['test/setup/fast-check.ts']
/** What these start is the program in dist/. */
const globalSetup = ['test/setup/build.ts']

/** Which test runs where, and what each needs, is in CONTRIBUTING.md. */
export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Tests wait as much as they work: one file more than there are cores.
    maxWorkers: availableParallelism() + 1,
    reporters: results ? ['default', ['json', { outputFile: results }]] : ['default'],
    projects: [
      {
        extends: true,
        // One process for many files: starting one and loading the same modules for each of 200 files takes as long as the tests.
        test: { name: 'unit', include: ['src/**/*.test.ts', 'web/src/**/*.test.ts'], setupFiles, isolate: false },
      },
      {
        extends: true,
        test: { name: 'program', include: ['test/**/*.test.ts'], exclude: ['test/full/**'], setupFiles, globalSetup },
      },
      {
        extends: true,
        test: {
          name: 'full',
          include: ['test/full/**/*.test.ts'],
          setupFiles,
          globalSetup,
          // Browsers and servers beside each other make each other late.
          maxWorkers: Math.max(1, availableParallelism() - 1),
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
