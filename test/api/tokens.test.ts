import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { TokenSource } from '../../src/api/token-source.ts'
import { loadConfig } from '../../src/config.ts'
import { findToken, hashToken, readApiTokens } from '../../src/core/api-token.ts'
import { HooktideError } from '../../src/core/error.ts'
import { isLoopback, listenAddress } from '../../src/core/listen-address.ts'
import type { Clock, Observer } from '../../src/ports.ts'
import { hooktide } from '../cli/support.ts'

const entry = { name: 'ops', hash: hashToken('t'.repeat(40)), scopes: ['read'] }

describe('entries', () => {
  test.each([
    ['the token itself in place of its hash', { ...entry, hash: 't'.repeat(40) }, 'tokens[0].hash'],
    ['an unknown scope', { ...entry, scopes: ['admin'] }, 'tokens[0].scopes'],
    ['no scope', { ...entry, scopes: [] }, 'tokens[0].scopes'],
    ['no name', { ...entry, name: '' }, 'tokens[0].name'],
    ['a tenant that is none', { ...entry, tenant: '' }, 'tokens[0].tenant'],
    ['a key nobody knows', { ...entry, scope: 'read' }, 'tokens[0].scope'],
    ['no mapping', 'x', 'tokens[0].name'],
  ])('%s is refused, and never printed', (_, item, field) => {
    const { problems } = readApiTokens([item])
    expect(problems.map((problem) => problem.field)).toContain(field)
    expect(JSON.stringify(problems)).not.toContain('t'.repeat(40))
  })

  test('the right token is found, whatever stands beside it, and no other', () => {
    const { tokens } = readApiTokens([entry, { ...entry, name: 'b', hash: hashToken('other') }])
    expect(findToken(tokens, 't'.repeat(40))?.name).toBe('ops')
    expect(findToken(tokens, 'other')?.name).toBe('b')
    expect(findToken(tokens, entry.hash)).toBeNull()
    expect(findToken([], '')).toBeNull()
  })
})

test('a token taken out of the file is refused soon, one put in is let in, and a slip locks nobody out', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'hooktide-tokens-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'tokens.yaml')
  let nowMs = 0
  const clock = { mono: () => nowMs } as Clock
  const logged: string[] = []
  const observer = { log: (_: string, name: string) => void logged.push(name) } as unknown as Observer
  await writeFile(path, JSON.stringify([entry]))
  const source = new TokenSource({ configured: [], path, clock, observer })
  expect(source.find('t'.repeat(40))?.name).toBe('ops')

  await writeFile(path, `tokens: [{name: new, hash: "${hashToken('new')}", scopes: [write]}]`)
  nowMs += 2_000
  expect([source.find('t'.repeat(40)), source.find('new')?.name]).toEqual([null, 'new'])

  await writeFile(path, 'tokens: [{name: broken}]')
  nowMs += 2_000
  expect([source.find('new')?.name, logged]).toEqual(['new', ['api.tokens_unreadable']])
  expect(() => new TokenSource({ configured: [], path, clock, observer })).toThrow(HooktideError)
})

describe('where it may listen', () => {
  const load = (api: object) => {
    try {
      loadConfig({ overrides: { api } })
      return []
    } catch (error) {
      return (error as HooktideError).details
    }
  }
  const tokens = [entry]

  test.each([
    ['loopback without tokens, when it says so', { listen: '127.0.0.1:0', auth: 'off' }],
    ['IPv6 loopback', { listen: '[::1]:9401', auth: 'off' }],
    ['everywhere, with tokens', { listen: '0.0.0.0:9401', tokens }],
    ['everywhere, with a file of tokens', { listen: '[::]:9401', tokensFile: '/etc/tokens.yaml' }],
    ['nowhere', {}],
  ])('%s: accepted', (_, api) => {
    expect(load(api)).toEqual([])
  })

  test.each([
    ['everywhere without tokens', { listen: '0.0.0.0:9401', auth: 'off' }, 'api.auth'],
    ['a name that only looks like loopback', { listen: 'localhost.example.com:9401', auth: 'off' }, 'api.auth'],
    ['an address of a network', { listen: '192.168.0.7:9401', auth: 'off' }, 'api.auth'],
    ['with no token at all', { listen: '127.0.0.1:9401' }, 'api.tokens'],
    ['no port', { listen: '127.0.0.1', tokens }, 'api.listen'],
    ['a port that is none', { listen: '127.0.0.1:99999', tokens }, 'api.listen'],
    [
      'a token in place of its hash',
      { listen: '127.0.0.1:1', tokens: [{ ...entry, hash: 'hkt_secret' }] },
      'api.tokens',
    ],
  ])('%s: refused, naming %s', (_, api, field) => {
    const details = load(api)
    expect(details.map((line) => line.split(/[ :]/)[0])).toEqual([field])
    expect(details.join()).not.toContain('hkt_secret')
  })

  test('addresses', () => {
    expect(listenAddress('[::1]:80')).toEqual({ host: '::1', port: 80 })
    expect(listenAddress('[1.2.3.4]:80')).toBeNull()
    expect(['127.9.9.9', '::1', 'LOCALHOST'].every((host) => isLoopback({ host, port: 1 }))).toBe(true)
    expect(['128.0.0.1', '::', 'local', '127.0.0.1.nip.io'].some((host) => isLoopback({ host, port: 1 }))).toBe(false)
  })
})

test('`tokens create` prints a token and the entry that lets it in; `tokens hash` the same hash', async () => {
  const made = await hooktide(['tokens', 'create', 'ops', '--scopes', 'read,write', '--tenant', 'acme'])
  const [token = '', ...lines] = made.out.trim().split('\n')
  const { tokens, problems } = readApiTokens(parse(lines.join('\n')))
  expect(problems).toEqual([])
  expect(findToken(tokens, token)).toMatchObject({ name: 'ops', scopes: ['read', 'write'], tenant: 'acme' })
  const hashed = await hooktide(['tokens', 'hash'], { input: `${token}\n` })
  expect(hashed.out.trim()).toBe(tokens[0]?.hash)
  expect((await hooktide(['tokens', 'hash'], { input: 'short' })).code).toBe(2)
  expect((await hooktide(['tokens', 'create', 'ops', '--scopes', 'all'])).code).toBe(2)
  expect((await hooktide(['tokens', 'create', 'no name'])).code).toBe(2)
})
