import { request as plain } from 'node:http'
import { request as secure } from 'node:https'
import type { ApiResponse, CallApi } from '../operations/api-client.ts'
import type { Clock } from '../ports.ts'

const maxBytes = 64 * 1024 * 1024

/** Requests of commands to the API of a service. Rejects with the reason when there is no whole answer within the time. */
export function createCallApi(clock: Clock): CallApi {
  return ({ method, url, headers, body, timeoutMs }) =>
    new Promise<ApiResponse>((resolve, reject) => {
      const target = new URL(url)
      const send = target.protocol === 'https:' ? secure : plain
      const length = body === null ? {} : { 'content-length': String(Buffer.byteLength(body)) }
      const request = send(target, { method, headers: { ...headers, ...length } }, (response) => {
        const parts: Buffer[] = []
        let bytes = 0
        response.on('data', (part: Buffer) => {
          bytes += part.length
          if (bytes > maxBytes) fail('the answer is too long')
          else parts.push(part)
        })
        response.on('end', () => {
          cancel()
          const texts = Object.entries(response.headers).map(([name, value]) => [name, String(value)])
          resolve({
            status: response.statusCode ?? 0,
            headers: Object.fromEntries(texts) as Record<string, string>,
            body: Buffer.concat(parts).toString('utf8'),
          })
        })
        response.on('error', (error) => fail(error.message))
      })
      const fail = (reason: string) => {
        cancel()
        request.destroy()
        reject(new Error(reason))
      }
      const cancel = clock.after(timeoutMs, () => fail(`no answer within ${timeoutMs} ms`))
      request.on('error', (error) => fail(error.message))
      request.end(body ?? undefined)
    })
}
