import { describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import { hooktide } from './support.ts'

const env = {
  KAFKA_BROKERS: 'k1:9092,k2:9092',
  HOOKTIDE_RETRY_CAP: '1h30m',
  HOOKTIDE_HTTP_ALLOW_PRIVATE: '127.0.0.1',
  HOOKTIDE_KAFKA_SASL_MECHANISM: 'scram-sha-256',
  HOOKTIDE_KAFKA_SASL_USERNAME: 'me',
  HOOKTIDE_KAFKA_SASL_PASSWORD_REF: 'env:PASSWORD',
  PASSWORD: 'hunter2',
}

describe('config show', () => {
  test('what it prints is a file that brings the same configuration about, and holds no secret', async () => {
    const { code, out } = await hooktide(['config', 'show'], { env })
    expect(code).toBe(0)
    expect(loadConfig({ text: out }).config).toEqual(loadConfig({ env }).config)
    expect(out).toContain('passwordRef: env:PASSWORD')
    expect(out).not.toContain('hunter2')
  })

  test('as JSON, with the warnings', async () => {
    const { config, warnings } = JSON.parse(
      (await hooktide(['config', 'show', '--json'], { env: { ...env, HOOKTIDE_SUSL: 'x' } })).out,
    )
    expect(config.kafka.brokers).toEqual(['k1:9092', 'k2:9092'])
    expect(warnings).toEqual([expect.stringContaining('HOOKTIDE_SUSL')])
  })

  test('--defaults is the annotated file, whatever is set here', async () => {
    const { out } = await hooktide(['config', 'show', '--defaults'], { env })
    expect(out).toContain('# ')
    expect(loadConfig({ text: out }).config).toEqual(loadConfig().config)
    const { config } = JSON.parse((await hooktide(['config', 'show', '--defaults', '--json'], { env })).out)
    expect(config.retry.cap).toBe('2h')
  })
})
