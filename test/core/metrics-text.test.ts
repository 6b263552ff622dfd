import { expect, test } from 'vitest'
import { parseMetrics } from '../../src/core/metrics-text.ts'

test.each([
  ['a plain one', 'hooktide_a 3', [{ name: 'hooktide_a', labels: {}, value: 3 }]],
  ['with labels', 'hooktide_a{x="1",y="b c"} 0.5', [{ name: 'hooktide_a', labels: { x: '1', y: 'b c' }, value: 0.5 }]],
  ['with a timestamp', 'hooktide_a 3 1700000000000', [{ name: 'hooktide_a', labels: {}, value: 3 }]],
  ['escapes', String.raw`hooktide_a{x="q\"b\\n\n}"} 1`, [{ name: 'hooktide_a', labels: { x: 'q"b\\n\n}' }, value: 1 }]],
  ['infinity', 'hooktide_a +Inf', [{ name: 'hooktide_a', labels: {}, value: Number.POSITIVE_INFINITY }]],
  ['no number', 'hooktide_a NaN\nhooktide_b x', []],
  ['others and comments', '# TYPE hooktide_a gauge\nprocess_cpu 1\n\n<html>', []],
])('a page in the text format: %s', (_, text, expected) => expect(parseMetrics(text, 'hooktide_')).toEqual(expected))
