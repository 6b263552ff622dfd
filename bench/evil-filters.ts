/** Filters and bodies made to take long: name, filter, body. */
export function evilFilters(): readonly (readonly [string, unknown, string])[] {
  const size = 262_144
  const a = 'a'.repeat(size - 20)
  const flat = JSON.stringify({ t: a })
  const many = (n: number, one: (i: number) => unknown) => Array.from({ length: n }, (_, i) => one(i))
  const numbers = `{"t":[${'1,'.repeat(size / 2 - 10)}1]}`
  const objects = `{"t":[${'{},'.repeat(size / 3 - 10)}{}]}`
  const levels = (n: number, inside: string) => '{"a":'.repeat(n) + inside + '}'.repeat(n)
  const path = (n: number) => `body${'.a'.repeat(n)}`
  return [
    ['a needle that almost fits everywhere', { 'body.t': { $contains: `${'a'.repeat(200)}b` } }, flat],
    ['a needle that fits from behind', { 'body.t': { $contains: `b${'a'.repeat(1_000)}` } }, flat],
    [
      'a needle with its odd one in the middle',
      { 'body.t': { $contains: `${'a'.repeat(500)}b${'a'.repeat(500)}` } },
      flat,
    ],
    [
      'a periodic needle',
      { 'body.t': { $contains: 'ab'.repeat(400) } },
      JSON.stringify({ t: 'ab'.repeat(199).concat('a').repeat(600) }),
    ],
    ['200 searches of a long text', { $or: many(200, (i) => ({ 'body.t': { $contains: `aaaaaaab${i}` } })) }, flat],
    ['200 searches of a long list', { $or: many(200, (i) => ({ 'body.t': { $contains: `x${i}` } })) }, numbers],
    ['200 walks over a long list', { $or: many(200, (i) => ({ 'body.t.*.x': i })) }, objects],
    ['200 negative walks', { $and: many(200, (i) => ({ 'body.t.*.x': { $ne: i } })) }, objects],
    ['walks with long ways', { $or: many(50, (i) => ({ [`body.t.*${'.a'.repeat(29)}`]: i })) }, objects],
    [
      'searches in each item',
      { $or: many(100, (i) => ({ 'body.t.*': { $contains: `zz${i}` } })) },
      JSON.stringify({ t: many(2_000, () => 'z'.repeat(100)) }),
    ],
    ['suffix of a long text', { $or: many(200, (i) => ({ 'body.t': { $suffix: `${i}a` } })) }, flat],
    ['equality with a long text', { 'body.t': { $ne: 'a'.repeat(16_000) } }, JSON.stringify({ t: 'a'.repeat(16_000) })],
    ['1,000 listed values', { 'body.t': { $in: many(1_000, (i) => `v${i}`) } }, JSON.stringify({ t: 'v1000' })],
    [
      'nested as deep as it may be',
      { $not: { $not: { $not: { $not: { $not: { $not: { $not: { [path(32)]: 1 } } } } } } } },
      levels(200, '1'),
    ],
    ['200 levels of objects', { [path(32)]: { $exists: true } }, levels(200, '1')],
    ['200 levels of lists', { [`body${'.0'.repeat(32)}`]: { $exists: true } }, '['.repeat(200) + ']'.repeat(200)],
    ['130,000 levels of lists', { 'body.0': { $exists: true } }, '['.repeat(size / 2) + ']'.repeat(size / 2)],
    ['brackets that never close', { 'body.0': { $exists: true } }, '['.repeat(size)],
    ['40,000 members', { 'body.k39999': 1 }, `{${many(20_000, (i) => `"k${i}":${i % 10}`).join(',')}}`],
    [
      'names of Object.prototype',
      {
        $or: ['constructor', '__proto__', 'toString', 'valueOf', 'hasOwnProperty'].map((name) => ({
          [`body.${name}.x`]: { $exists: true },
        })),
      },
      '{"__proto__":{"x":1}}',
    ],
    [
      'regular expressions that take for ever',
      { 'body.t': { $in: ['(a+)+$', '(a|aa)+$', '(.*a){20}', '([a-zA-Z]+)*$'] } },
      flat,
    ],
    ['escapes only', { 'body.t': { $contains: '\u0001' } }, `{"t":"${'\\u0002'.repeat(size / 6 - 10)}"}`],
  ]
}
