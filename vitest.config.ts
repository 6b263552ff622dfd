import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    globalSetup: ['test/support/broker-setup.ts'],
    // Read by .ci/run, which counts from it.
    reporters: ['default', ['json', { outputFile: '.hooktide/test-report.json' }]],
    testTimeout: 30_000,
    hookTimeout: 120_000,
  },
})
