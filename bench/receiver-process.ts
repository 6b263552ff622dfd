import { createServer, type Socket } from 'node:net'
import { digits, instant, layout } from './events.ts'
import { monoMs } from './mono.ts'
import { Tally } from './tally.ts'

/**
 * The endpoint, in a process of its own. Plain sockets and the least HTTP there is, so that it is not what is measured.
 * What it does stands in the path: `/ok` answers 200, `/delay/N` after N ms, `/hang` never, `/drip` a
 * byte of its header every half second, `/status/N` with N, `/head/N` the first
 * number 503 N times, everything else 200, `/fail/N` N of a hundred once with 503,
 * `/limit` once 429 with Retry-After 1 + n mod 30 seconds, then 200.
 */
let tally = new Tally(0, 0)
const tell = (message: object) => void process.send?.(message)

process.on('message', (message: { t: string; base: number; count: number }) => {
  if (message.t === 'expect') {
    tally = new Tally(message.base, message.count)
    tell({ t: 'ready' })
  } else if (message.t === 'counts') tell({ t: 'counts', ...tally.counts })
  else if (message.t === 'report') tell({ t: 'report', report: tally.report() })
})
process.on('disconnect', () => process.exit(0))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined)

const server = createServer({ noDelay: true }, serve)
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') tell({ t: 'port', port: address.port })
})

function serve(socket: Socket): void {
  let held: Buffer | null = null
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk: Buffer) => {
    let data: Buffer = held === null ? chunk : Buffer.concat([held, chunk])
    held = null
    for (;;) {
      const end = data.indexOf('\r\n\r\n')
      if (end < 0) break
      const head = data.toString('latin1', 0, end)
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
      if (data.length < end + 4 + length) break
      answer(
        socket,
        head.slice(head.indexOf(' ') + 1, head.indexOf(' HTTP/')),
        data.subarray(end + 4, end + 4 + length),
      )
      data = data.subarray(end + 4 + length)
      if (data.length === 0) return
    }
    held = data
  })
}

function answer(socket: Socket, path: string, body: Buffer): void {
  const nowMs = monoMs()
  const n = digits(body, layout.n[0], layout.n[1])
  const seen = tally.arrived(n, digits(body, layout.k[0], layout.k[1]), instant(body, layout.at[0]), nowMs)
  for (const mark of tally.marks()) tell({ t: 'mark', mark, atMs: nowMs })
  if (path === '/ok') socket.write(okText)
  else if (path === '/hang') return
  else if (path === '/drip') drip(socket)
  else if (path.startsWith('/delay/')) {
    setTimeout(() => socket.write(okText), Number(path.slice(7)))
  } else if (path.startsWith('/status/')) socket.write(plain(Number(path.slice(8))))
  else if (path.startsWith('/fail/')) socket.write(seen === 1 && n % 100 < Number(path.slice(6)) ? plain(503) : okText)
  else if (path.startsWith('/head/')) socket.write(n === 0 && seen <= Number(path.slice(6)) ? plain(503) : okText)
  else if (path === '/limit' && seen === 1) {
    const seconds = 1 + (n % 30)
    tally.dueAt(n, monoMs() + seconds * 1000)
    socket.write(`HTTP/1.1 429 Slow down\r\nretry-after: ${seconds}\r\ncontent-length: 0\r\n\r\n`)
  } else socket.write(okText)
}

/** A header that never ends. */
function drip(socket: Socket): void {
  socket.write('HTTP/1.1 200 OK\r\nx-slow: ')
  const timer = setInterval(() => socket.write('x'), 500)
  socket.on('close', () => clearInterval(timer))
}

function plain(status: number): string {
  return `HTTP/1.1 ${status} As told\r\ncontent-length: 0\r\n\r\n`
}

const okText = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
