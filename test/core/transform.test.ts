import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { EventFacts } from '../../src/core/event-facts.ts'
import { type CompiledTransformation, compileTransformation } from '../../src/core/transform.ts'
import { fillTemplate } from '../../src/core/transform-run.ts'

const attributes = {
  id: 'e1',
  type: 'order.created',
  tenant: 'acme',
  key: null,
  contentType: 'application/json',
  timeMs: 1_700_000_000_000,
}

function facts(body: unknown): EventFacts {
  return new EventFacts(attributes, Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)))
}

function compiled(template: unknown): CompiledTransformation {
  const result = compileTransformation({ template })
  if (!result.ok) throw new Error(JSON.stringify(result.problems))
  return result.value
}

function filled(template: unknown, body: unknown): unknown {
  const result = fillTemplate(compiled(template), facts(body))
  return result.ok ? JSON.parse(result.value.toString()) : result.reason
}

const order = {
  id: 'o-1',
  total: 12.5,
  customer: { name: 'Ada', mail: 'ada@example.com', secret: 'x' },
  items: [{ sku: 'a', n: 1, tags: ['x', 'y'] }, { sku: 'b' }],
  'a.b': true,
}

describe('templates', () => {
  test.each<[string, unknown, unknown]>([
    ['constants', { a: 1, b: [true, null, 'x'] }, { a: 1, b: [true, null, 'x'] }],
    ['a path', { $path: 'body.customer.name' }, 'Ada'],
    ['a subtree', { who: { $path: 'body.customer' } }, { who: order.customer }],
    ['a pointer', { x: { $path: '/a.b' } }, { x: true }],
    [
      'attributes of the event',
      { t: { $path: 'event.type' }, at: { $path: 'event.time' } },
      { t: 'order.created', at: '2023-11-14T22:13:20.000Z' },
    ],
    ['what is missing is left out', { a: { $path: 'body.none' }, b: 1 }, { b: 1 }],
    ['what is missing in a list is null', [{ $path: 'body.none' }, 1], [null, 1]],
    ['a default', { a: { $path: 'body.none', $default: { x: [] } } }, { a: { x: [] } }],
    ['a key that is not there', { k: { $path: 'event.key', $default: null } }, { k: null }],
    [
      'joined texts',
      { $concat: ['#', { $path: 'body.id' }, ' ', { $path: 'body.total' }, { $path: 'body.none' }] },
      '#o-1 12.5',
    ],
    [
      'each item',
      { $map: 'body.items', $to: { id: { $path: 'item.sku' }, n: { $path: 'item.n', $default: 0 } } },
      [
        { id: 'a', n: 1 },
        { id: 'b', n: 0 },
      ],
    ],
    [
      'each item of each item',
      { $map: 'body.items', $to: { $map: 'item.tags', $to: { $concat: [{ $path: 'item' }, '!'] } } },
      [['x!', 'y!'], null],
    ],
    ['a list that is none is missing', { l: { $map: 'body.id', $to: 1 }, ok: 1 }, { ok: 1 }],
    ['picked members', { $pick: ['id', 'none'] }, { id: 'o-1' }],
    ['omitted members', { $omit: ['secret'], $from: 'body.customer' }, { name: 'Ada', mail: 'ada@example.com' }],
    ['renamed members', { $pick: ['id', 'total'], $rename: { total: 'amount' } }, { id: 'o-1', amount: 12.5 }],
    [
      'renamed, the rest kept',
      { $rename: { name: 'n' }, $from: 'body.customer' },
      { n: 'Ada', mail: 'ada@example.com', secret: 'x' },
    ],
    ['a constant with dollars', { $const: { $ref: '#/x' } }, { $ref: '#/x' }],
    ['a member named __proto__', { $pick: ['id'], $rename: { id: '__proto__' } }, JSON.parse('{"__proto__":"o-1"}')],
  ])('%s', (_, template, wanted) => {
    expect(filled(template, order)).toEqual(wanted)
  })
})

describe('what can not be filled says why', () => {
  test.each<[string, unknown, unknown, RegExp]>([
    ['no JSON', { $path: 'body.a' }, 'x', /not JSON/],
    ['required and missing', { a: { $path: 'body.a', $required: true } }, {}, /body\.a is required and missing/],
    ['nothing at all', { $path: 'body.a' }, {}, /yields nothing/],
    ['joining objects', { $concat: [{ $path: 'body' }] }, {}, /\$concat joins/],
    [
      'too large',
      Array.from({ length: 40 }, () => ({ $path: 'body.t' })),
      { t: 'x'.repeat(10_000) },
      /larger than 262144 bytes/,
    ],
    ['too large by escapes', { $path: 'body.t' }, { t: '\u0001'.repeat(100_000) }, /larger than 262144 bytes/],
    [
      'each item of each item of each item',
      { $map: 'body.l', $to: { $map: 'body.l', $to: { $map: 'body.l', $to: 1 } } },
      { l: Array.from({ length: 1_000 }, () => 0) },
      /larger than|more than/,
    ],
    ['too deep', { $path: 'body' }, '['.repeat(1_000) + ']'.repeat(1_000), /deeper than 256/],
  ])('%s', (_, template, body, reason) => {
    const start = performance.now()
    expect(filled(template, body)).toMatch(reason)
    expect(performance.now() - start).toBeLessThan(1_000)
  })

  test('what asks for nothing of the body is filled whatever that is', () => {
    expect(filled({ type: { $path: 'event.type' } }, 'x')).toEqual({ type: 'order.created' })
  })
})

describe('refused, with place and remedy', () => {
  test.each<[string, unknown, RegExp, RegExp]>([
    ['a path without a root', { a: { $path: 'id' } }, /template\.a\.\$path$/, /did you mean body\.id\?/],
    ['no path', { $path: 1 }, /\$path$/, /is no text/],
    ['a slip', { a: { $paht: 'body.a' } }, /\$paht$/, /did you mean \$path\?/],
    ['a stranger beside it', { $path: 'body.a', x: 1 }, /template\.x$/, /\$default, \$required/],
    ['item outside of a map', { $path: 'item.a' }, /\$path$/, /outside of \$map/],
    ['a map to nothing', { $map: 'body.a' }, /\$to$/, /is missing/],
    ['a star', { $path: 'body.*.a', $required: 1 }, /\$required$/, /true or false/],
    ['names that are none', { $pick: 'id' }, /\$pick$/, /list of names/],
    ['renames that are none', { $rename: { a: 1 } }, /\$rename$/, /object of names/],
    ['a default beside required', { $path: 'body.a', $required: true, $default: 1 }, /\$default$/, /keep one/],
    ['nothing', undefined, /^transform\.template$/, /is missing/],
    ['too large', { a: 'x'.repeat(17_000) }, /^transform\.template$/, /larger than 16384/],
    ['too many parts', Array.from({ length: 501 }, () => 1), /template\[499\]$/, /keep 500/],
    ['too deep', Array.from({ length: 17 }).reduce((inner) => [inner], 1 as unknown), /\[0\]$/, /deeper than 16/],
  ])('%s', (_, template, place, text) => {
    const result = compileTransformation({ template })
    if (result.ok) throw new Error('was accepted')
    const { field, message, remedy } = result.problems[0] ?? { field: '', message: '', remedy: '' }
    expect(field).toMatch(place)
    expect(`${message}; ${remedy}`).toMatch(text)
  })
})

test('a template that takes the whole body gives the same JSON, whatever that is', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (body) => {
      const text = JSON.stringify(body)
      expect(filled({ got: { $path: 'body' } }, text)).toEqual({ got: JSON.parse(text) })
    }),
  )
})
