import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Line } from '../conformance/report.ts'
import type { ResponseCase } from '../conformance/response-case.ts'
import { runResponses } from '../conformance/run-responses.ts'
import { runSignatures, type SignatureFile } from '../conformance/run-signatures.ts'
import { runSsrf, type SsrfCase } from '../conformance/run-ssrf.ts'

function cases<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../cases/${name}.json`, import.meta.url), 'utf8')) as T
}

function failed(lines: readonly Line[]): readonly Line[] {
  return lines.filter((line) => line.ok === false)
}

function passed(lines: readonly Line[]): number {
  return lines.filter((line) => line.ok === true).length
}

test('every subscription URL of the case file is refused or dialled as it says', async () => {
  const lines = await runSsrf(cases<{ cases: SsrfCase[] }>('ssrf-urls').cases)
  expect(failed(lines)).toEqual([])
  expect(passed(lines)).toBe(236)
})

test('the further subscription URLs of our own are refused or dialled as they should', async () => {
  const { cases: items } = cases<{ cases: SsrfCase[] }>('more-ssrf-urls')
  const lines = await runSsrf(items)
  expect(failed(lines)).toEqual([])
  expect(passed(lines)).toBe(items.length)
})

test('every receiver of the case file gets the outcome it says, in time, and leaves nothing behind', async () => {
  const lines = await runResponses(cases<{ cases: ResponseCase[] }>('responses').cases)
  expect(failed(lines)).toEqual([])
  expect(lines.filter((line) => line.ok === null)).toEqual([])
  // One further line is about unhandled faults.
  expect(passed(lines)).toBe(104 + 1)
}, 60_000)

test('the further receivers of our own get the right outcome', async () => {
  const file = cases<{ cases: ResponseCase[] }>('more-responses')
  const lines = await runResponses(file.cases)
  expect(failed(lines)).toEqual([])
  expect(passed(lines)).toBe(file.cases.length + 1)
}, 60_000)

test('every signature vector comes out byte for byte over the wire', async () => {
  const lines = await runSignatures(cases<SignatureFile>('signatures'))
  expect(failed(lines)).toEqual([])
  expect(passed(lines)).toBe(57)
}, 60_000)

test('the runner reports a wrong expectation as failed', async () => {
  const [right] = cases<{ cases: SsrfCase[] }>('ssrf-urls').cases
  const [line] = await runSsrf([{ ...(right as SsrfCase), verdict: 'allow' }])
  expect(line).toMatchObject({ ok: false, expected: 'allow', got: 'block' })
})
