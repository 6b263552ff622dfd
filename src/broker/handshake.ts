import { connect } from 'node:net'
import type { Clock } from '../ports.ts'

/**
 * Asks host:port for its API versions (ApiVersions v0, KIP-35) and says whether a Kafka broker answered. An open port
 * alone proves nothing: a broker binds before it processes requests, and another program may own the port.
 */
export function answersKafka(clock: Clock, host: string, port: number, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port })
    let received = Buffer.alloc(0)
    const finish = (answer: boolean) => {
      cancel()
      socket.destroy()
      resolve(answer)
    }
    const cancel = clock.after(timeoutMs, () => finish(false))
    socket.on('error', () => finish(false))
    socket.on('close', () => finish(false))
    socket.on('connect', () => socket.write(apiVersionsRequest))
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      if (received.length < 10) return
      // size, correlation id, error code: 0 is success
      finish(received.readInt32BE(4) === correlationId && received.readInt16BE(8) === 0)
    })
  })
}

const correlationId = 0x68_6f_6f_6b
const clientId = Buffer.from('hooktide')
const apiVersionsRequest = (() => {
  const bytes = Buffer.alloc(14 + clientId.length)
  bytes.writeInt32BE(10 + clientId.length, 0)
  bytes.writeInt16BE(18, 4) // ApiVersions
  bytes.writeInt16BE(0, 6)
  bytes.writeInt32BE(correlationId, 8)
  bytes.writeInt16BE(clientId.length, 12)
  clientId.copy(bytes, 14)
  return bytes
})()
