import { createServer } from 'node:net'

/** `count` different free ports on 127.0.0.1. Free now: whoever uses them must cope with losing the race. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => listen(0)))
  const ports = servers.map((server) => (server.address() as { port: number }).port)
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

export async function isFree(port: number): Promise<boolean> {
  const server = await listen(port).catch(() => null)
  if (server === null) return false
  await new Promise((resolve) => server.close(resolve))
  return true
}

function listen(port: number) {
  return new Promise<ReturnType<typeof createServer>>((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}
