import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { afterAll, describe, expect, test } from 'vitest'
import { buildProgram } from '../../src/cli/program.ts'
import { type ErrorCode, HooktideError } from '../../src/core/error.ts'
import { hooktide, sink } from './support.ts'

function program(): Command {
  const { output } = sink()
  return buildProgram({ stdout: output, stderr: output, env: {} } as never)
}

function everyCommand(command: Command, path: string): { path: string; command: Command }[] {
  return [{ path, command }, ...command.commands.flatMap((child) => everyCommand(child, `${path} ${child.name()}`))]
}

describe('every command', () => {
  test.each(everyCommand(program(), 'hooktide').map(({ path }) => path))(
    '%s --help exits 0 and shows how to use it',
    async (path) => {
      const { code, out, err } = await hooktide([...path.split(' ').slice(1), '--help'])
      expect({ code, err }).toEqual({ code: 0, err: '' })
      expect(out).toContain(`Usage: ${path}`)
      for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(120)
      const examples = out.split('\nExamples:\n')[1] ?? ''
      expect(examples.match(new RegExp(`^ {2}.*\\b${path}\\b`, 'gm'))?.length ?? 0).toBeGreaterThanOrEqual(1)
      expect(examples.match(/^ {2}.*hooktide /gm)?.length).toBeGreaterThanOrEqual(2)
      expect(out.match(/^Exit codes: 0 /gm)).toHaveLength(1)
    },
  )

  test('every command that reads can print JSON', () => {
    const reading =
      /(list|show|status|doctor|version|plan|verify|produce|add|update|remove|apply|redrive|listen|demo|rotate-secret)$/
    const all = everyCommand(program(), 'hooktide').filter(({ path }) => reading.test(path))
    expect(all.length).toBeGreaterThan(15)
    const without = all.filter(({ command }) => !command.options.some(({ long }) => long === '--json'))
    expect(without.map(({ path }) => path)).toEqual([])
  })
})

describe('one table of exit codes, whatever the command', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hooktide-exit-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const nowhere = join(folder, 'nowhere')
  const wrong = file('wrong.yaml', 'topics: { lanes: many }')
  const text = file('text.yaml', 'a: [b')

  test.each<[string, string[], number, string]>([
    ['help', ['lines', '--help'], 0, ''],
    ['an unknown command', ['nothing'], 2, 'unknown command'],
    ['an unknown subcommand', ['lines', 'nothing'], 2, 'unknown command'],
    ['an argument too many', ['lines', 'list', 'nothing'], 2, 'too many arguments'],
    ['an unknown option', ['topics', 'plan', '--nothing'], 2, 'unknown option'],
    ['no configuration file', ['status', '--config', nowhere], 2, 'can not be read'],
    ['no configuration file, for topics', ['topics', 'apply', '--config', nowhere], 2, 'can not be read'],
    ['no configuration file, for the service', ['up', '--config', nowhere], 2, 'can not be read'],
    ['a configuration with problems', ['topics', 'verify', '--config', wrong], 2, 'topics.lanes ("many")'],
    ['a configuration that is no YAML', ['config', 'show', '--config', text], 2, 'is not YAML'],
    ['the same, as a finding', ['doctor', '--config', text], 1, ''],
    ['no such file to apply', ['subscriptions', 'apply', nowhere], 2, 'can not be read'],
    ['a file to apply that is no YAML', ['subscriptions', 'apply', text], 2, 'is no YAML or JSON'],
    [
      'a file to apply with nothing in it',
      ['subscriptions', 'apply', file('empty.yaml', '')],
      2,
      'holds no subscriptions',
    ],
    [
      'a token reference that leads nowhere',
      ['status', '--api-url', 'http://x', '--token-ref', 'env:NO'],
      2,
      'NO is not',
    ],
  ])('%s: %j ends with %i', async (_name, args, code, said) => {
    const found = await hooktide(args)
    expect([found.code, found.err]).toEqual([code, expect.stringContaining(said)])
  })

  test.each<[ErrorCode, number]>([
    ['usage', 2],
    ['config.invalid', 2],
    ['subscription.invalid', 2],
    ['event.invalid', 2],
    ['record.too-large', 2],
    ['subscription.unreadable', 1],
    ['broker.unavailable', 1],
    ['topic.drift', 1],
    ['topic.missing', 1],
    ['not-found', 1],
    ['conflict', 1],
    ['check.failed', 1],
    ['internal', 1],
  ])('an error %s ends with %i', async (code, exit) => {
    const connect = () => Promise.reject(new HooktideError(code, 'so it is'))
    expect(await hooktide(['topics', 'plan'], { connect })).toEqual({ code: exit, out: '', err: 'error: so it is\n' })
  })
})

describe('usage errors exit 2 and say what to write', () => {
  test.each([
    [['statsu'], "error: unknown command 'statsu'\n(Did you mean status?)\n"],
    [['status', '--jsn'], "error: unknown option '--jsn'\n(Did you mean --json?)\n"],
    [['subscriptions', 'show'], "error: missing required argument 'id'\n"],
    [
      ['produce', '--rate', 'fast'],
      "error: option '--rate <perSecond>' argument 'fast' is invalid. Write how many per second, above 0.\n",
    ],
    [
      ['listen', '--delay', '5'],
      "error: option '--delay <duration>' argument '5' is invalid. Write a number with its unit, e.g. 250ms, 10s, 5m, 2h, 7d.\n",
    ],
    [
      ['up', '--roles', 'router,deliver'],
      `error: option '--roles <roles>' argument 'router,deliver' is invalid. "deliver" is no role; write router, deliverer, projector, api, or several of them. Did you mean deliverer?\n`,
    ],
    [
      ['dead', 'redrive'],
      'error: this would send every dead letter there is\nGive delivery ids or a filter, or say --all.\n',
    ],
    [
      ['dead', 'list', '--cursor', 'x'],
      'error: "x" is no cursor\nGive the one that the last call printed: partition/offset.\n',
    ],
    [
      ['listen', '--every', '3'],
      'error: --every says how often to fail, but not how\nAdd --status 503 or --hang-up.\n',
    ],
    [['listen', '--secret', 'hunter2'], 'error: --secret is neither env:NAME, file:PATH nor a secret (whsec_…)\n'],
    [
      ['produce', '--empty', '--data', 'x'],
      'error: --empty and a body were both given\nSee `hooktide produce --help`.\n',
    ],
    [['produce', '--data', 'x', 'file'], 'error: --data and a file were both given\nSee `hooktide produce --help`.\n'],
  ])('%j', async (args, err) => {
    expect(await hooktide(args)).toEqual({ code: 2, out: '', err })
  })

  test('no command at all prints the help and exits 2', async () => {
    const { code, err } = await hooktide([])
    expect(code).toBe(2)
    expect(err).toContain('Usage: hooktide')
  })
})

describe('errors', () => {
  test('a configuration with problems: every one of them, the remedy, exit 2, no stack', async () => {
    const { code, err } = await hooktide(['status'], {
      env: { HOOKTIDE_TOPICS_LANES: 'many', HOOKTIDE_RETRY_BASE: '10' },
    })
    expect(code).toBe(2)
    expect(err.split('\n')[0]).toBe('error: configuration has 2 problems')
    expect(err).toContain('  HOOKTIDE_TOPICS_LANES ("many")')
    expect(err).toContain('  HOOKTIDE_RETRY_BASE ("10")')
    expect(err).toContain('Correct every line named')
    expect(err).not.toContain('    at ')
  })

  test('--debug adds the stack, wherever it stands', async () => {
    for (const args of [
      ['--debug', 'status'],
      ['status', '--debug'],
    ]) {
      expect((await hooktide(args, { env: { HOOKTIDE_TOPICS_LANES: '0' } })).err).toContain('    at ')
    }
  })

  test('--config stands before or after the command; a missing file is named', async () => {
    for (const args of [
      ['--config', '/nowhere.yaml', 'status'],
      ['status', '--config', '/nowhere.yaml'],
    ]) {
      const { code, err } = await hooktide(args)
      expect(code).toBe(2)
      expect(err).toContain('/nowhere.yaml can not be read')
    }
  })

  test('a bug is called one, without its stack', async () => {
    const { code, err } = await hooktide(['status'], {
      connect: () => Promise.reject(new TypeError('x is not a function')),
    })
    expect(code).toBe(70)
    expect(err).toBe(
      'error: x is not a function\nThis is a bug of Hooktide. Run it again with --debug and report what it prints.\n',
    )
  })
})

test('up hands the configuration and the roles on, in their own order', async () => {
  const started: unknown[] = []
  const startService = async ({
    loaded,
    roles,
  }: {
    loaded: { config: { topics: { lanes: number } } }
    roles: readonly string[]
  }) => {
    started.push(loaded.config.topics.lanes, roles)
  }
  const { code } = await hooktide(['up', '--roles', 'deliverer,router'], {
    env: { HOOKTIDE_TOPICS_LANES: '3' },
    startService,
  })
  expect({ code, started }).toEqual({ code: 0, started: [3, ['router', 'deliverer']] })
})

test('demo exits 1 when its own check found something', async () => {
  const runDemo = async (options: { json: boolean; events: number | null }) => options.events === 7 && !options.json
  expect((await hooktide(['demo', '--events', '7'], { runDemo })).code).toBe(0)
  expect((await hooktide(['demo', '--json'], { runDemo })).code).toBe(1)
})

test('--version is the bare number, for scripts', async () => {
  expect(await hooktide(['--version'])).toEqual({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), err: '' })
})

test('help of a command can be asked for in both ways', async () => {
  const [one, other] = [await hooktide(['help', 'status']), await hooktide(['status', '-h'])]
  expect(one).toEqual(other)
  expect(one.code).toBe(0)
})

test('version, as text and as JSON', async () => {
  expect((await hooktide(['version'])).out).toMatch(/^hooktide \d+\.\d+\.\d+ \(Node 24\.0\.0, linux x64\)\n$/)
  expect(JSON.parse((await hooktide(['version', '--json'])).out)).toEqual({
    hooktide: expect.stringMatching(/^\d/),
    node: '24.0.0',
    platform: 'linux x64',
  })
})
