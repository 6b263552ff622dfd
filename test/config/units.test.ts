import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatDuration, formatSize, parseDuration, parseSize } from '../../src/config/units.ts'

test.each([
  ['250ms', 250],
  ['10s', 10_000],
  ['1.5s', 1500],
  ['1h30m', 5_400_000],
  [' 2 h ', 7_200_000],
  ['1d', 86_400_000],
  ['0', 0],
  ['0.1s', 100],
  ['10', null],
  ['', null],
  ['s', null],
  ['-1s', null],
  ['1e3s', null],
  ['1s2', null],
  ['0.1ms', null],
  ['10 S', null],
  ['999999999999999d', null],
])('duration %j is %j ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

test.each([
  ['512', 512],
  ['256KiB', 262_144],
  ['64 MiB', 67_108_864],
  ['1MB', 1_000_000],
  ['1.5KiB', 1536],
  ['0', 0],
  ['1kib', null],
  ['-1', null],
  ['1.5', null],
  ['', null],
  ['99999999999GiB', null],
])('size %j is %j bytes', (text, bytes) => {
  expect(parseSize(text)).toBe(bytes)
})

test('what is printed is read back the same', () => {
  fc.assert(
    fc.property(fc.nat({ max: 1e12 }), (n) => {
      expect(parseDuration(formatDuration(n))).toBe(n)
      expect(parseSize(formatSize(n))).toBe(n)
    }),
  )
})
