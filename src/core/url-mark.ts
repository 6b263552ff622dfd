import { createHash } from 'node:crypto'

/**
 * Eight hex digits of a URL's digest: a delivery carries that of the URL its subscription had when it was matched, so that an
 * attempt at another one can be told, without the URL (queries hold tokens) in every record.
 */
export function urlMark(url: string): string {
  let mark = known.get(url)
  if (mark === undefined) {
    mark = createHash('sha256').update(url).digest('hex').slice(0, 8)
    if (known.size >= 50_000) known.clear()
    known.set(url, mark)
  }
  return mark
}

/** Asked for with every delivery and every attempt. */
const known = new Map<string, string>()
