import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { guardPolicy } from '../../src/core/guard-policy.ts'
import { parseSecret, verifySignature, webhookIdProblem } from '../../src/core/signature.ts'
import { HttpSender } from '../../src/http/sender.ts'
import type { SigningKey } from '../../src/ports.ts'
import { realClock } from '../support/clock.ts'
import { type Line, mapConcurrently } from './report.ts'

interface SignatureCase {
  readonly id: string
  readonly level?: string
  readonly secrets: readonly string[]
  readonly webhookId: string
  readonly webhookTimestamp: string
  readonly contentType: string
  readonly body?: string
  readonly bodyBase64?: string
  readonly bodyGen?: { prefix: string; repeat: string; count: number; suffix: string }
  readonly bodyBytes: number
  readonly bodySha256: string
  readonly signatureHeader: string
}

export interface SignatureFile {
  readonly cases: readonly SignatureCase[]
  readonly rejectSecrets?: readonly { id: string; level?: string; secret: string }[]
  readonly rejectIds?: readonly { id: string; level?: string; webhookId: string }[]
  readonly verifyVectors?: readonly {
    id: string
    level?: string
    header: string
    secret: string
    webhookId: string
    webhookTimestamp: string
    body?: string
    bodyBase64?: string
    valid: boolean
  }[]
}

/** The real sender to a receiver that compares what came over the wire; refusals by the code that refuses. */
export async function runSignatures(file: SignatureFile): Promise<Line[]> {
  const receiver = await startReceiver()
  try {
    const lines = await mapConcurrently(file.cases, 8, (item) => signCase(item, receiver))
    for (const { id, level = 'hard', secret } of file.rejectSecrets ?? []) {
      const key = parseSecret(secret)
      lines.push({
        id,
        level,
        expected: 'rejected',
        got: key.ok ? 'accepted' : 'rejected',
        ok: !key.ok,
        ...noteOf(key),
      })
    }
    for (const { id, level = 'hard', webhookId } of file.rejectIds ?? [])
      lines.push(await idCase(id, level, webhookId, receiver))
    for (const vector of file.verifyVectors ?? []) {
      const { id, level = 'hard', header, secret, webhookId, webhookTimestamp, valid } = vector
      const body =
        vector.bodyBase64 === undefined ? Buffer.from(vector.body ?? '') : Buffer.from(vector.bodyBase64, 'base64')
      const got = verifySignature(secret, header, webhookId, webhookTimestamp, body)
      lines.push({ id, level, expected: String(valid), got: String(got), ok: got === valid })
    }
    return lines
  } finally {
    await receiver.close()
  }
}

async function signCase(item: SignatureCase, receiver: Receiver): Promise<Line> {
  const { id, level = 'hard', signatureHeader: expected } = item
  const keys: SigningKey[] = []
  for (const secret of item.secrets) {
    const key = parseSecret(secret)
    if (!key.ok) return { id, level, expected, got: `secret refused: ${key.reason}`, ok: false }
    keys.push(key.value)
  }
  const sender = senderAt(Number(item.webhookTimestamp))
  const path = `/${encodeURIComponent(id)}`
  const reply = await sender.post(postOf(receiver.url + path, item.webhookId, item.contentType, bodyOf(item), keys))
  await sender.close()
  const seen = receiver.take(path)
  if (seen === undefined) return { id, level, expected, got: `nothing arrived: ${JSON.stringify(reply)}`, ok: false }
  const wrong = [
    seen.sha256 === item.bodySha256 ? '' : `body ${seen.sha256}`,
    seen.headers['content-length'] === String(item.bodyBytes) ? '' : `content-length ${seen.headers['content-length']}`,
    seen.headers['webhook-id'] === item.webhookId ? '' : `webhook-id ${seen.headers['webhook-id']}`,
    seen.headers['webhook-timestamp'] === item.webhookTimestamp
      ? ''
      : `webhook-timestamp ${seen.headers['webhook-timestamp']}`,
    seen.headers['content-type'] === item.contentType ? '' : `content-type ${seen.headers['content-type']}`,
  ].filter((text) => text !== '')
  const got = String(seen.headers['webhook-signature'])
  return {
    id,
    level,
    expected,
    got,
    ok: got === expected && wrong.length === 0,
    ...(wrong.length > 0 ? { note: wrong.join('; ') } : {}),
  }
}

async function idCase(id: string, level: string, webhookId: string, receiver: Receiver): Promise<Line> {
  const sender = senderAt(1_700_000_000)
  const path = `/${encodeURIComponent(id)}`
  const reply = await sender.post(postOf(receiver.url + path, webhookId, 'application/json', Buffer.from('{}'), []))
  await sender.close()
  const refused = webhookIdProblem(webhookId) !== null && reply.t === 'failure' && receiver.take(path) === undefined
  const note = webhookIdProblem(webhookId) ?? undefined
  return {
    id,
    level,
    expected: 'rejected',
    got: refused ? 'rejected' : 'sent',
    ok: refused,
    ...(note === undefined ? {} : { note }),
  }
}

function bodyOf(item: SignatureCase): Buffer {
  if (item.bodyBase64 !== undefined) return Buffer.from(item.bodyBase64, 'base64')
  const { bodyGen } = item
  if (bodyGen !== undefined) return Buffer.from(bodyGen.prefix + bodyGen.repeat.repeat(bodyGen.count) + bodyGen.suffix)
  return Buffer.from(item.body ?? '')
}

function senderAt(timestampS: number): HttpSender {
  const policy = guardPolicy({ allowHttp: true, allowPrivate: ['127.0.0.0/8'] })
  if (!policy.ok) throw new Error(policy.reason)
  // Real timers, the case's time of day.
  return new HttpSender({ clock: { ...realClock, now: () => timestampS * 1000 }, policy: policy.value })
}

function postOf(url: string, deliveryId: string, contentType: string, body: Buffer, keys: SigningKey[]) {
  return {
    url,
    deliveryId,
    attempt: 1,
    eventType: 'case.run',
    contentType,
    traceparent: null,
    body,
    headers: undefined,
    keys,
    timeoutMs: undefined,
  }
}

function noteOf(result: { ok: true } | { ok: false; reason: string }): { note?: string } {
  return result.ok ? {} : { note: result.reason }
}

interface Seen {
  readonly headers: NodeJS.Dict<string | string[]>
  readonly sha256: string
}

interface Receiver {
  readonly url: string
  take(path: string): Seen | undefined
  close(): Promise<void>
}

async function startReceiver(): Promise<Receiver> {
  const seen = new Map<string, Seen>()
  const server = createServer((request, response) => {
    const hash = createHash('sha256')
    request.on('data', (chunk: Buffer) => hash.update(chunk))
    request.on('end', () => {
      seen.set(request.url ?? '', { headers: request.headers, sha256: hash.digest('hex') })
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    take: (path) => seen.get(path),
    close: () => new Promise((resolve) => server.close(() => resolve()).closeAllConnections()),
  }
}
