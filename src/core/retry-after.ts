/** Longest hint that is obeyed: 2 h, the top tier. */
export const retryAfterCapMs = 7_200_000

/**
 * Milliseconds a `Retry-After` value asks for (RFC 9110 §10.2.3): whole seconds or one of the three HTTP dates (§5.6.7).
 * Null for a past or zero wait and for everything else: `120s`, `0x10`, `1e3`, ISO dates, two values in one line.
 * Never more than `capMs`, so no timer can overflow.
 */
export function parseRetryAfter(value: string, nowMs: number, capMs = retryAfterCapMs): number | null {
  const text = value.replace(/^[\t ]+|[\t ]+$/g, '')
  let ms: number
  if (/^[0-9]+$/.test(text)) ms = Number(text) * 1000
  else {
    const date = parseHttpDate(text, nowMs)
    if (date === null) return null
    ms = date - nowMs
  }
  return ms > 0 ? Math.min(ms, capMs) : null
}

/** Of repeated header lines the longest usable wait: later than one of them asked is never too early for another. */
export function pickRetryAfter(values: string | readonly string[] | undefined, nowMs: number): string | null {
  if (values === undefined) return null
  let best: string | null = null
  let bestMs = -1
  for (const value of typeof values === 'string' ? [values] : values) {
    const ms = parseRetryAfter(value, nowMs) ?? 0
    if (ms > bestMs) {
      bestMs = ms
      best = value
    }
  }
  return best
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const days = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const longDays = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const month = `(${months.join('|')})`
const time = '(\\d\\d):(\\d\\d):(\\d\\d)'
const imf = new RegExp(`^(?:${days.join('|')}), (\\d\\d) ${month} (\\d{4}) ${time} GMT$`)
const rfc850 = new RegExp(`^(?:${longDays.join('|')}), (\\d\\d)-${month}-(\\d\\d) ${time} GMT$`)
const asctime = new RegExp(`^(?:${days.join('|')}) ${month} (\\d\\d| \\d) ${time} (\\d{4})$`)

/** Epoch ms, or null. `nowMs` places the two-digit year of RFC 850: at most 50 years ahead. */
export function parseHttpDate(text: string, nowMs: number): number | null {
  let m = imf.exec(text)
  if (m !== null) return utc(m[3], m[2], m[1], m[4], m[5], m[6])
  m = asctime.exec(text)
  if (m !== null) return utc(m[6], m[1], m[2], m[3], m[4], m[5])
  m = rfc850.exec(text)
  if (m === null) return null
  const thisYear = new Date(nowMs).getUTCFullYear()
  let year = thisYear - (thisYear % 100) + Number(m[3])
  if (year > thisYear + 50) year -= 100
  else if (year <= thisYear - 50) year += 100
  return utc(String(year), m[2], m[1], m[4], m[5], m[6])
}

type Part = string | undefined

function utc(year: Part, monthName: Part, day: Part, hour: Part, minute: Part, second: Part): number | null {
  const [h, min, s] = [Number(hour), Number(minute), Number(second)]
  if (h > 23 || min > 59 || s > 60) return null
  const d = Number(day)
  const date = new Date(0)
  date.setUTCFullYear(Number(year), months.indexOf(monthName as string), d)
  if (date.getUTCDate() !== d) return null
  return date.getTime() + (h * 3600 + min * 60 + s) * 1000
}
