import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    // Many files start brokers and processes of their own: more at once would only make all of them late.
    maxWorkers: 2,
    globalSetup: ['test/support/broker-setup.ts'],
    // Read by .ci/run, which counts from it.
    reporters: ['default', ['json', { outputFile: '.hooktide/test-report.json' }]],
    // Real brokers and processes on two cores that CI shares: a second try tells a late machine from a fault, and is printed.
    retry: process.env.CI === 'true' ? 1 : 0,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
})
