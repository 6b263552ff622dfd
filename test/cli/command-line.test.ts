import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { buildProgram } from '../../src/cli/program.ts'
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
      // Subcommands of topics share the examples of their parent.
      if (!path.startsWith('hooktide topics '))
        expect(out.match(/^ {2}.*hooktide /gm)?.length).toBeGreaterThanOrEqual(2)
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
  test('a configuration with problems: every one of them, the remedy, exit 1, no stack', async () => {
    const { code, err } = await hooktide(['status'], {
      env: { HOOKTIDE_TOPICS_LANES: 'many', HOOKTIDE_RETRY_BASE: '10' },
    })
    expect(code).toBe(1)
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
      expect(code).toBe(1)
      expect(err).toContain('/nowhere.yaml can not be read')
    }
  })

  test('a bug is called one, without its stack', async () => {
    const { code, err } = await hooktide(['status'], {
      connect: () => Promise.reject(new TypeError('x is not a function')),
    })
    expect(code).toBe(1)
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
