import { readFileSync } from 'node:fs'
import { formatLine, type Line, summarize } from './report.ts'
import { runResponses } from './run-responses.ts'
import { runSignatures } from './run-signatures.ts'
import { runSsrf } from './run-ssrf.ts'

const usage = 'usage: npm run conformance -- ssrf|responses|signatures FILE [--json]'
const args = process.argv.slice(2).filter((arg) => arg !== '--json')
const json = process.argv.includes('--json')
const [kind, file] = args

// The sender's own timers don't hold a process; a case that only waits for one would end it.
const alive = setInterval(() => {}, 1000)
process.exitCode = await main()
clearInterval(alive)

async function main(): Promise<number> {
  if (kind === undefined || file === undefined) return complain(usage)
  let data: never
  try {
    data = JSON.parse(readFileSync(file, 'utf8')) as never
  } catch (error) {
    return complain(`${file}: ${error instanceof Error ? error.message : String(error)}`)
  }
  const lines = await run(kind, data)
  if (lines === null) return complain(usage)
  for (const line of lines) console.log(json ? JSON.stringify(line) : formatLine(line))
  const summary = summarize(lines)
  if (json) console.log(JSON.stringify({ summary }))
  else {
    const { total, passed, failed, hardFailed, notRun } = summary
    console.log(
      `${passed} of ${total} passed, ${failed} failed (${hardFailed} of them hard), ${notRun.length} not run here`,
    )
    if (notRun.length > 0) console.log(`not run here: ${notRun.join(', ')}`)
  }
  return summary.hardFailed === 0 ? 0 : 1
}

function run(what: string, data: never): Promise<Line[]> | null {
  if (what === 'responses') return runResponses((data as { cases: never[] }).cases)
  if (what === 'ssrf') return runSsrf((data as { cases: never[] }).cases)
  return what === 'signatures' ? runSignatures(data) : null
}

function complain(text: string): number {
  console.error(text)
  return 2
}
