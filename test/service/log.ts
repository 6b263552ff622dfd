export interface LogLine {
  readonly level: string
  readonly event: string
  readonly [field: string]: unknown
}

/** What a service logged. Lines that are no JSON (a process's last words) have the event `text`. */
export class Log {
  readonly lines: LogLine[] = []
  #rest = ''

  write(text: string): void {
    const parts = (this.#rest + text).split('\n')
    this.#rest = parts.pop() ?? ''
    for (const part of parts) if (part !== '') this.lines.push(parsed(part))
  }

  of(event: string, where: (line: LogLine) => boolean = () => true): LogLine[] {
    return this.lines.filter((line) => line.event === event && where(line))
  }

  /** Every line that is no routine. */
  get trouble(): LogLine[] {
    return this.lines.filter(({ level }) => level === 'warn' || level === 'error' || level === 'text')
  }

  get text(): string {
    return this.lines.map((line) => JSON.stringify(line)).join('\n')
  }
}

function parsed(text: string): LogLine {
  try {
    return JSON.parse(text) as LogLine
  } catch {
    return { level: 'text', event: 'text', text }
  }
}
