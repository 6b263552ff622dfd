import { get } from 'node:http'
import { HooktideError } from '../core/error.ts'
import type { Clock } from '../ports.ts'

const maxChars = 16 * 1024 * 1024

/** Text behind an http URL, for pages of our own instances. Rejects `not-found` with the URL and the reason. */
export function fetchText(clock: Clock, url: string, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (reason: string) => {
      cancel()
      request.destroy()
      reject(
        new HooktideError('not-found', `${url}: ${reason}`, {
          remedy: 'Check the address, and that the instance runs.',
        }),
      )
    }
    const request = get(url, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        text += part
        if (text.length > maxChars) fail('the answer is too long')
      })
      response.on('end', () => {
        if (response.statusCode !== 200) return fail(`answered ${response.statusCode}`)
        cancel()
        resolve(text)
      })
      response.on('error', (error) => fail(error.message))
    })
    const cancel = clock.after(timeoutMs, () => fail(`no answer within ${timeoutMs} ms`))
    request.on('error', (error) => fail(error.message))
  })
}
