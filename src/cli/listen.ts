import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { HooktideError, messageOf } from '../core/error.ts'
import { trimFileNewline } from '../core/signature.ts'
import type { CommandContext } from './context.ts'
import type { Env } from './deps.ts'
import { exitCode } from './exit-code.ts'
import { countArgument, durationArgument, listArgument } from './options.ts'
import { type Behaviour, type ReceivedRequest, Receiver } from './receiver.ts'
import { oneLine, plural } from './text.ts'

interface Options {
  readonly port: number
  readonly host: string
  readonly secret?: readonly string[]
  readonly status?: number
  readonly every?: number
  readonly delay?: number
  readonly hangUp?: boolean
  readonly retryAfter?: number
  readonly requests?: number
  readonly body?: boolean
  readonly json?: boolean
}

/** `hooktide listen`: an endpoint on this machine, good or bad as told. */
export function listenCommand(context: CommandContext): Command {
  const { deps, print } = context
  return new Command('listen')
    .description('Receive webhooks here: verifies signatures, prints one line per request, fails when told to')
    .option('--port <port>', 'port; 0: any free one', countArgument(0, 65_535), 9000)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--secret <secret>', 'env:NAME, file:PATH or the text (whsec_…, whpk_…); repeat for several', listArgument)
    .option('--status <status>', 'answer with this status', countArgument(200, 599))
    .option('--every <n>', 'fail only every nth request', countArgument(1, 1e6))
    .option('--delay <duration>', 'wait before answering', durationArgument)
    .option('--hang-up', 'close the connection instead of answering')
    .option('--retry-after <seconds>', 'Retry-After of failing answers', countArgument(0, 1e6))
    .option('--requests <n>', 'end after n requests', countArgument(1, 1e9))
    .option('--body', 'print bodies, too')
    .option('--json', 'print one JSON object per line')
    .addHelpText('after', examples)
    .action(async (options: Options) => {
      const secrets = (options.secret ?? []).map((secret) => secretText(secret, deps.env))
      let bad = 0
      let done: () => void = () => undefined
      const finished = new Promise<void>((resolve) => {
        done = resolve
      })
      let count = 0
      const receiver = new Receiver({
        clock: deps.clock,
        port: options.port,
        host: options.host,
        secretsOf: () => secrets,
        behaviours: new Map([['*', behaviourOf(options)]]),
        onRequest(request) {
          if (request.verdict !== 'verified' && request.verdict !== 'none') bad++
          const body = options.body === true
          deps.stdout.write(`${options.json === true ? requestJson(request, body) : requestLine(request, body)}\n`)
          if (++count === options.requests) done()
        },
      })
      const port = await receiver.start().catch((cause: unknown) => {
        throw new HooktideError(
          'check.failed',
          `can not listen on ${options.host}:${options.port}: ${messageOf(cause)}`,
          {
            cause,
            remedy: 'Give another --port; 0 takes any free one.',
          },
        )
      })
      context.note(
        `listening on http://${options.host}:${port}${secrets.length === 0 ? ' (signatures are not checked: no --secret)' : ''}`,
      )
      deps.signal.addEventListener('abort', () => done())
      if (deps.signal.aborted) done()
      await finished
      await receiver.stop()
      if (options.json !== true) print(`${plural(count, 'request')}, ${bad} not verified`)
      deps.setExitCode(bad > 0 ? exitCode.failed : exitCode.ok)
    })
}

export function behaviourOf(options: Pick<Options, 'status' | 'every' | 'delay' | 'hangUp' | 'retryAfter'>): Behaviour {
  const fails = options.status !== undefined || options.hangUp === true
  if (options.every !== undefined && !fails) {
    throw new HooktideError('usage', '--every says how often to fail, but not how', {
      remedy: 'Add --status 503 or --hang-up.',
    })
  }
  if (options.retryAfter !== undefined && (options.status ?? 0) < 300) {
    throw new HooktideError('usage', '--retry-after goes with a failing answer', { remedy: 'Add --status 429.' })
  }
  return {
    ...(options.status === undefined ? {} : { status: options.status }),
    ...(options.every === undefined ? {} : { every: options.every }),
    ...(options.delay === undefined ? {} : { delayMs: options.delay }),
    ...(options.hangUp === true ? { hangUp: true } : {}),
    ...(options.retryAfter === undefined ? {} : { retryAfterS: options.retryAfter }),
  }
}

/** `10:00:00.123 200 POST /hook 12ms msg_… attempt 1 order.created 20 B verified`. */
export function requestLine(request: ReceivedRequest, withBody: boolean): string {
  const { atMs, method, path, deliveryId, attempt, eventType, verdict, repeated, status, durationMs, body } = request
  const words = [
    new Date(atMs).toISOString().slice(11, 23),
    status === null ? '---' : String(status),
    method,
    path,
    `${Math.round(durationMs)}ms`,
    deliveryId === '' ? 'no-id' : deliveryId,
    attempt === null ? '' : `attempt ${attempt}`,
    eventType,
    `${body.length} B`,
    verdict === 'none' ? '' : verdict,
    repeated ? 'again' : '',
  ]
  const line = oneLine(words.filter((word) => word !== '').join(' '))
  return withBody ? `${line}\n${body.toString('utf8')}` : line
}

function requestJson(request: ReceivedRequest, withBody: boolean): string {
  const { headers: _headers, body, durationMs, ...rest } = request
  const shown = { ...rest, durationMs: Math.round(durationMs), bytes: body.length }
  return JSON.stringify(withBody ? { ...shown, body: body.toString('utf8') } : shown)
}

function secretText(secret: string, env: Env): string {
  if (secret.startsWith('env:')) {
    const text = env[secret.slice(4)]
    if (text !== undefined && text !== '') return text
    throw new HooktideError('secret.unavailable', `environment variable ${secret.slice(4)} is not set or empty`, {
      remedy: 'Set it, or correct --secret.',
    })
  }
  if (!secret.startsWith('file:')) {
    if (/^(whsec|whsk|whpk)_/.test(secret)) return secret
    // Not echoed: it may be a secret with a slip.
    throw new HooktideError('usage', '--secret is neither env:NAME, file:PATH nor a secret (whsec_…)')
  }
  try {
    return trimFileNewline(readFileSync(secret.slice(5), 'utf8'))
  } catch (cause) {
    throw new HooktideError('secret.unavailable', `${secret} can not be read: ${messageOf(cause)}`, { cause })
  }
}

const examples = `
Examples:
  hooktide listen --port 9000 --secret env:WEBHOOK_SECRET
  hooktide listen --every 3 --status 503                      every third request fails
  hooktide listen --status 429 --retry-after 5
  hooktide listen --delay 2s --hang-up
  hooktide listen --json --requests 100 > received.ndjson
Exit codes: 0 ended as asked; 1 a signature was missing or wrong, or it could not listen; 2 wrong input`
