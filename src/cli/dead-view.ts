import { encodeOrigin } from '../core/delivery.ts'
import type { DeadLetter } from '../operations/dead-read.ts'
import { headerTexts } from '../schema/decode.ts'
import { oneLine, table, time } from './text.ts'

/** Stable shape of one dead letter in JSON. */
export function deadJson(letter: DeadLetter): object {
  const { partition, record, delivery, problem, reason, deadAtMs } = letter
  return {
    deliveryId: delivery?.id ?? null,
    subscriptionId: delivery?.subscriptionId ?? record.key?.toString() ?? null,
    tenant: delivery?.tenant ?? null,
    eventId: delivery?.eventId ?? null,
    eventType: delivery?.eventType ?? null,
    contentType: delivery?.contentType ?? null,
    orderingKey: delivery?.orderingKey ?? null,
    attempts: delivery?.attempts ?? null,
    reason,
    error: delivery?.lastError ?? problem,
    deadAtMs,
    eventTimeMs: delivery?.eventTimeMs ?? null,
    origin: delivery === null ? null : encodeOrigin(delivery.origin),
    bytes: record.value?.length ?? 0,
    partition,
    offset: record.offset,
  }
}

export function deadTable(letters: readonly DeadLetter[]): string {
  return table(
    [
      { title: 'DIED' },
      { title: 'SUBSCRIPTION', max: 18 },
      { title: 'TYPE', max: 16 },
      { title: 'TRIES', right: true },
      { title: 'REASON' },
      { title: 'ERROR', max: 16 },
      { title: 'AT', max: 10 },
    ],
    letters.map(({ partition, record, delivery, problem, reason, deadAtMs }) => [
      time(deadAtMs).slice(5),
      delivery?.subscriptionId ?? record.key?.toString() ?? '?',
      delivery?.eventType ?? '?',
      String(delivery?.attempts ?? '?'),
      reason,
      delivery?.lastError ?? problem ?? '',
      `${partition}/${record.offset}`,
    ]),
  )
}

const previewBytes = 2048

export function deadText(letter: DeadLetter): string {
  const body = letter.record.value ?? Buffer.alloc(0)
  const fields = Object.entries(deadJson(letter)).map(([name, value]) => {
    const shown = name.endsWith('Ms') && typeof value === 'number' ? time(value) : (value ?? '-')
    return `${name.replace(/Ms$/, '').padEnd(16)}${oneLine(String(shown))}`
  })
  const headers = Object.entries(headerTexts(letter.record.headers)).map(([n, v]) => `  ${oneLine(`${n}: ${v}`)}`)
  const more = body.length > previewBytes ? ` (first ${previewBytes} of ${body.length} bytes; --body prints all)` : ''
  return [...fields, 'headers', ...headers, `body${more}`, bodyPreview(body)].join('\n')
}

/** The beginning of a body as text, or as hex when it is none. */
export function bodyPreview(body: Buffer): string {
  const part = body.subarray(0, previewBytes)
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(part, { stream: body.length > previewBytes })
    return text
      .split('\n')
      .map((line) => `  ${oneLine(line.replaceAll('\t', '  '))}`)
      .join('\n')
  } catch {
    return `  ${part
      .subarray(0, 512)
      .toString('hex')
      .replace(/(.{64})(?=.)/g, '$1\n  ')}`
  }
}
