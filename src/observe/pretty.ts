const colours: Readonly<Record<string, string>> = { debug: '90', info: '32', warn: '33', error: '31' }

/** One JSON log line as a line for people: `12:03:04.567 WARN  lane.commit_failed lane=3 code=producer.fenced`. */
export function prettyLine(json: string, colour: boolean): string {
  let line: Record<string, unknown>
  try {
    line = JSON.parse(json) as Record<string, unknown>
  } catch {
    return `${printable(json.trimEnd())}\n`
  }
  const { time, level, event, ...fields } = line
  const paint = (code: string, text: string) => (colour ? `\u001b[${code}m${text}\u001b[0m` : text)
  const clock = paint('90', String(time).slice(11, 23))
  const label = paint(colours[String(level)] ?? '0', String(level).toUpperCase().padEnd(5))
  const rest = Object.entries(fields).map(([name, value]) => ` ${paint('36', printable(name))}=${shown(value)}`)
  return `${clock} ${label} ${paint('1', printable(String(event)))}${rest.join('')}\n`
}

function shown(value: unknown): string {
  if (typeof value !== 'string') return String(value)
  return /^[\w.:/@*+,-]+$/.test(value) ? value : printable(JSON.stringify(value))
}

/** What came from outside must not steer the terminal. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Bidi_Control}]/gu, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
