import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: ['test/full/**', 'node_modules/**'],
    globalSetup: ['test/setup/build.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
