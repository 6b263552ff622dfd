import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parseMasterKeys, type SealedSecret } from '../../src/core/sealed-secret.ts'
import { Secret } from '../../src/core/secret.ts'
import type { Clock, Observer } from '../../src/ports.ts'
import { decodeSecret } from '../../src/schema/decode.ts'
import { newSigningSecret, seal } from '../../src/secrets/make-secret.ts'
import { masterKeysBehind, References } from '../../src/secrets/references.ts'
import { SealedSecrets } from '../../src/secrets/sealed-secrets.ts'
import { SigningSecrets } from '../../src/secrets/signing-secrets.ts'

const first = newSigningSecret().reveal()
const second = newSigningSecret().reveal()

let directory: string
let outside: string
let mono: number
let logged: string[]
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'hooktide-secrets-'))
  outside = mkdtempSync(join(tmpdir(), 'hooktide-outside-'))
  mono = 0
  logged = []
})
afterEach(() => {
  for (const path of [directory, outside]) rmSync(path, { recursive: true, force: true })
})

const clock: Clock = { now: () => 0, mono: () => mono, after: () => () => {}, random: () => 0 }
const observer: Observer = {
  log: (level, name, fields) => logged.push(`${level} ${name} ${JSON.stringify(fields)}`),
  count: () => {},
  time: () => {},
}

function world(env: Record<string, string> = {}, masterKeyRef: string | null = null) {
  const references = new References({ env, directory, clock })
  const sealed = new SealedSecrets({ decode: decodeSecret, masterKeys: masterKeysBehind(masterKeyRef, references) })
  return { sealed, secrets: new SigningSecrets({ references, sealed, clock, observer }) }
}

/** Which secret signs, seen from outside. */
function signature(secrets: SigningSecrets, ref: string): string | null {
  return (
    secrets
      .keys(ref)
      ?.map((key) => `${key.kind},${key.sign(['content'])}`)
      .join(' ') ?? null
  )
}
const signed = (text: string) => signature(world({ A: text }).secrets, 'env:A')

function reasonOf(secrets: SigningSecrets, ref: string): string {
  const result = secrets.resolve(ref)
  if (result.ok) throw new Error(`${ref} must not resolve`)
  return result.reason
}

describe('env:', () => {
  test('gives the key in the variable, the same objects every time', () => {
    const { secrets } = world({ A: first })
    expect(secrets.keys('env:A')).toHaveLength(1)
    expect(secrets.keys('env:A')).toBe(secrets.keys('env:A'))
  })

  test.each([
    ['env:MISSING', 'environment variable MISSING is not set'],
    ['env:EMPTY', 'environment variable EMPTY is not set or empty'],
    ['env:toString', 'environment variable toString is not set'],
    ['env:WRONG', 'env:WRONG holds no signing secret'],
    ['whsec_hunter2', 'not a reference'],
    ['vault:x', 'not a reference'],
  ])('%s: null, and a reason without the text', (ref, reason) => {
    const { secrets } = world({ EMPTY: '', WRONG: 'hunter2' })
    expect(secrets.keys(ref)).toBeNull()
    expect(reasonOf(secrets, ref)).toContain(reason)
    expect(logged).toHaveLength(1)
    expect(logged.join() + reasonOf(secrets, ref)).not.toContain('hunter2')
  })

  test('a lasting failure is logged once a minute, not once a delivery; its end is logged too', () => {
    const { secrets } = world()
    for (mono = 0; mono < 120_000; mono += 100) secrets.keys('file:a')
    expect(logged).toHaveLength(2)
    writeFileSync(join(directory, 'a'), first)
    secrets.keys('file:a')
    expect(logged.at(-1)).toContain('secret.available')
  })
})

describe('file:', () => {
  test('gives the key in the file, with or without its final newline, by relative or absolute path', () => {
    writeFileSync(join(directory, 'a'), `${first}\n`)
    mkdirSync(join(directory, 'sub'))
    writeFileSync(join(directory, 'sub', 'b'), first)
    const { secrets } = world()
    for (const ref of ['file:a', 'file:sub/b', 'file:./sub/../a', `file:${join(directory, 'a')}`])
      expect(signature(secrets, ref)).toBe(signed(first))
  })

  test('a changed file signs within a second; until then nothing is read', () => {
    const path = join(directory, 'a')
    writeFileSync(path, first)
    const { secrets } = world()
    const before = secrets.keys('file:a')
    mono = 1500
    expect(secrets.keys('file:a')).toBe(before)
    writeFileSync(path, second)
    utimesSync(path, 1, 1)
    mono = 2400
    expect(signature(secrets, 'file:a')).toBe(signed(first))
    mono = 2500
    expect(signature(secrets, 'file:a')).toBe(signed(second))
  })

  test('a file that was taken away stops signing, one that appears starts', () => {
    const path = join(directory, 'a')
    const { secrets } = world()
    expect(secrets.keys('file:a')).toBeNull()
    writeFileSync(path, first)
    mono = 1000
    expect(secrets.keys('file:a')).not.toBeNull()
    rmSync(path)
    mono = 2000
    expect(secrets.keys('file:a')).toBeNull()
  })

  test('a mounted volume that swaps its directory link (Kubernetes) is followed', () => {
    for (const [name, text] of [
      ['v1', first],
      ['v2', second],
    ] as const) {
      mkdirSync(join(directory, name))
      writeFileSync(join(directory, name, 'a'), text)
    }
    symlinkSync('v1', join(directory, '..data'))
    symlinkSync('..data/a', join(directory, 'a'))
    const { secrets } = world()
    expect(signature(secrets, 'file:a')).toBe(signed(first))
    symlinkSync('v2', join(directory, '..new'))
    renameSync(join(directory, '..new'), join(directory, '..data'))
    mono = 1000
    expect(signature(secrets, 'file:a')).toBe(signed(second))
  })

  test('nothing outside the directory is read, whatever way the path takes', () => {
    writeFileSync(join(outside, 'a'), first)
    symlinkSync(join(outside, 'a'), join(directory, 'link'))
    symlinkSync(outside, join(directory, 'dirlink'))
    const { secrets } = world()
    const name = outside.split('/').at(-1)
    for (const path of [
      `../${name}/a`,
      join(outside, 'a'),
      `${directory}/../${name}/a`,
      'x/../../etc/passwd',
      '.',
      '',
      '..',
      'a\0b',
      `${directory}x/a`,
    ])
      expect(reasonOf(secrets, `file:${path}`), path).toContain('not inside secrets.directory')
    for (const path of ['link', 'dirlink/a', `${directory}/dirlink/a`])
      expect(reasonOf(secrets, `file:${path}`), path).toContain('link out of secrets.directory')
  })

  test('a directory, a FIFO, an oversized and a missing file give a reason and do not hang', () => {
    mkdirSync(join(directory, 'd'))
    execFileSync('mkfifo', [join(directory, 'fifo')])
    writeFileSync(join(directory, 'big'), 'x'.repeat(65_537))
    const { secrets } = world()
    for (const path of ['d', 'fifo', 'big'])
      expect(reasonOf(secrets, `file:${path}`), path).toContain('not a regular file of at most')
    expect(reasonOf(secrets, 'file:missing')).toContain('ENOENT')
  })

  test('an unreadable file gives a reason', () => {
    writeFileSync(join(directory, 'a'), first, { mode: 0 })
    chmodSync(directory, 0o755)
    symlinkSync('loop', join(directory, 'loop'))
    const { secrets } = world()
    expect(reasonOf(secrets, 'file:loop')).toContain('ELOOP')
    // Root reads everything, so as root this looks with the eyes of nobody.
    const root = process.geteuid?.() === 0
    if (root) process.seteuid?.(65_534)
    try {
      expect(reasonOf(secrets, 'file:a')).toContain('EACCES')
    } finally {
      if (root) process.seteuid?.(0)
    }
  })

  test('without a directory no file is read', () => {
    const references = new References({ env: {}, directory: null, clock })
    expect(references.text('file:/etc/hostname')).toMatchObject({
      ok: false,
      reason: expect.stringContaining('secrets.directory'),
    })
  })
})

describe('kafka:', () => {
  const k1 = `k1:${randomBytes(32).toString('base64')}`
  const k2 = `k2:${randomBytes(32).toString('base64')}`
  const sealedBy = (master: string, id: string, text: string, version = 1): SealedSecret => {
    const keys = parseMasterKeys(master)
    if (!keys.ok) throw new Error(keys.reason)
    return seal({ id, version, text: new Secret(text), createdAtMs: 0 }, keys.value.current)
  }
  const record = (id: string, value: object | null) => ({
    key: Buffer.from(id),
    value: value === null ? null : Buffer.from(JSON.stringify(value)),
  })

  test('gives the key sealed in the topic; a new version, a tombstone and a new record take effect at once', () => {
    const { sealed, secrets } = world({ M: k1 }, 'env:M')
    expect(reasonOf(secrets, 'kafka:acme')).toContain('not in the secrets topic')
    sealed.apply(record('acme', sealedBy(k1, 'acme', first)))
    expect(signature(secrets, 'kafka:acme')).toBe(signed(first))
    sealed.apply(record('acme', sealedBy(k1, 'acme', second, 2)))
    expect(signature(secrets, 'kafka:acme')).toBe(signed(second))
    expect(sealed.sealed('acme')?.version).toBe(2)
    sealed.apply(record('acme', null))
    expect(secrets.keys('kafka:acme')).toBeNull()
  })

  test('a record moved under another id is refused, by its key and by its seal', () => {
    const { sealed, secrets } = world({ M: k1 }, 'env:M')
    const moved = sealedBy(k1, 'acme', first)
    expect(sealed.apply(record('globex', moved))).toMatchObject({ ok: false })
    expect(secrets.keys('kafka:globex')).toBeNull()
    expect(sealed.apply(record('globex', { ...moved, id: 'globex' }))).toMatchObject({ ok: true })
    expect(reasonOf(secrets, 'kafka:globex')).toContain('does not open')
  })

  test('a damaged or newer record hides the old secret and keeps its reason', () => {
    const { sealed, secrets } = world({ M: k1 }, 'env:M')
    const good = sealedBy(k1, 'acme', first)
    sealed.apply(record('acme', good))
    expect(sealed.apply(record('acme', { ...good, v: 2 }))).toMatchObject({ ok: false, code: 'unknown-version' })
    expect(reasonOf(secrets, 'kafka:acme')).toContain('unknown here')
    sealed.apply({ key: Buffer.from('acme'), value: Buffer.from(JSON.stringify(good)).subarray(0, 40) })
    expect(reasonOf(secrets, 'kafka:acme')).toContain('not JSON')
    expect([...sealed.ids()]).toEqual(['acme'])
    sealed.apply(record('acme', good))
    expect(signature(secrets, 'kafka:acme')).toBe(signed(first))
  })

  test('a wrong, missing or malformed master key gives a reason', () => {
    const { sealed, secrets } = world({ M: k2.replace('k2', 'k1'), BAD: 'hunter2' }, 'env:M')
    sealed.apply(record('acme', sealedBy(k1, 'acme', first)))
    expect(reasonOf(secrets, 'kafka:acme')).toContain('wrong master key')
    for (const [ref, reason] of [
      [null, 'masterKeyRef is not set'],
      ['env:NONE', 'NONE is not set'],
      ['env:BAD', 'no key id'],
    ] as const) {
      const other = world({ BAD: 'hunter2' }, ref)
      other.sealed.apply(record('acme', sealedBy(k1, 'acme', first)))
      expect(reasonOf(other.secrets, 'kafka:acme')).toContain(reason)
    }
  })

  test('a master key added to its file opens what was closed, without a restart', () => {
    writeFileSync(join(directory, 'master'), k1)
    const { sealed, secrets } = world({}, 'file:master')
    sealed.apply(record('old', sealedBy(k1, 'old', first)))
    sealed.apply(record('new', sealedBy(k2, 'new', second)))
    expect([signature(secrets, 'kafka:old'), signature(secrets, 'kafka:new')]).toEqual([signed(first), null])
    writeFileSync(join(directory, 'master'), `${k2}\n${k1}\n`)
    mono = 1000
    expect([signature(secrets, 'kafka:old'), signature(secrets, 'kafka:new')]).toEqual([signed(first), signed(second)])
  })
})

test('nothing of a secret shows when the parts are printed', () => {
  writeFileSync(join(directory, 'a'), first)
  const { secrets, sealed } = world({ A: second })
  secrets.keys('file:a')
  secrets.keys('env:A')
  const text = JSON.stringify([secrets, sealed, secrets.keys('file:a')]) + logged.join()
  for (const part of [first, second]) expect(text).not.toContain(part.slice(6, 30))
})
