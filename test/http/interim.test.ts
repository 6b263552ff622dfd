import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { InterimFilter } from '../../src/http/interim.ts'

/** What the parser reads when the text arrives in pieces cut at the given places. */
async function through(text: string, cuts: readonly number[], arm = true): Promise<string> {
  const stream = new PassThrough()
  const filter = new InterimFilter(stream as unknown as Socket)
  if (arm) filter.arm()
  let out = ''
  const places = [0, ...[...new Set(cuts)].sort((a, b) => a - b), text.length]
  for (let i = 1; i < places.length; i++) {
    stream.write(Buffer.from(text.slice(places[i - 1], places[i]), 'latin1'))
    out += ((stream.read() as Buffer | null) ?? Buffer.alloc(0)).toString('latin1')
  }
  return out
}

const final = 'HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nHTTP/1.1 100'

test.each([
  [`HTTP/1.1 100 Continue\r\n\r\n${final}`, `HTTP/1.1 102 Continue\r\n\r\n${final}`],
  [
    `HTTP/1.0 100\r\nx: y\r\n\r\nHTTP/1.1 103 E\r\n\r\nHTTP/1.1 100 C\r\n\r\n${final}`,
    `HTTP/1.0 102\r\nx: y\r\n\r\nHTTP/1.1 103 E\r\n\r\nHTTP/1.1 102 C\r\n\r\n${final}`,
  ],
  [final, final],
  ['HTTP/1.1 200 HTTP/1.1 100\r\n\r\n', 'HTTP/1.1 200 HTTP/1.1 100\r\n\r\n'],
  ['\r\nHTTP/1.1 100 C\r\n\r\n', '\r\nHTTP/1.1 102 C\r\n\r\n'],
  ['garbage HTTP/1.1 100', 'garbage HTTP/1.1 100'],
])('only leading 100s change, however the bytes are cut: %j', async (text, expected) => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: text.length })), async (cuts) => {
      expect(await through(text, cuts)).toBe(expected)
    }),
  )
})

test('nothing changes while no response is awaited', async () => {
  const text = `HTTP/1.1 100 Continue\r\n\r\n${final}`
  expect(await through(text, [], false)).toBe(text)
})
