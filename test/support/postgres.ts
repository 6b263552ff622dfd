import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

/**
 * A Postgres of this test file, on loopback and in a folder that goes with it; HOOKTIDE_TEST_POSTGRES (a URL whose user may
 * create databases and schemas) is used instead where it is set. Null where there is no Postgres here; the reason is printed.
 */
export async function startPostgres(): Promise<{ readonly url: string; stop(): Promise<void> } | null> {
  const given = process.env.HOOKTIDE_TEST_POSTGRES
  if (given !== undefined && given !== '') return { url: given, stop: async () => undefined }
  const bin = folderOfServer()
  if (bin === null) {
    console.warn('Skipped: needs a Postgres server (Debian: postgresql), or HOOKTIDE_TEST_POSTGRES')
    return null
  }
  const folder = mkdtempSync(join(tmpdir(), 'hooktide-postgres-'))
  // Postgres does not run as root: as nobody in particular then.
  const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const options = { ...user, cwd: folder, env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' } }
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'hooktide', '-A', 'trust', '--no-sync'], {
    ...options,
    timeout: 60_000,
    stdio: 'pipe',
  })
  const port = await freePort()
  const settings = ['fsync=off', 'listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`, `port=${port}`]
  const server = spawn(join(bin, 'postgres'), ['-D', data, ...settings.flatMap((setting) => ['-c', setting])], {
    ...options,
    stdio: 'ignore',
  })
  const kill = () => void server.kill('SIGKILL')
  process.once('exit', kill)
  await answering(port, server)
  return {
    url: `postgres://hooktide@127.0.0.1:${port}/postgres`,
    async stop() {
      process.removeListener('exit', kill)
      const ended = new Promise((resolve) => server.once('exit', resolve))
      server.kill('SIGINT')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function folderOfServer(): string | null {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
  const folders = [
    ...versions.map((version) => join(debian, version, 'bin')),
    ...(process.env.PATH ?? '').split(delimiter),
  ]
  return folders.find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres'))) ?? null
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

async function answering(port: number, server: ChildProcess): Promise<void> {
  const deadlineMs = Date.now() + 30_000
  while (server.exitCode === null && Date.now() < deadlineMs) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1')
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
      socket.once('close', () => socket.destroy())
      socket.setTimeout(1_000, () => socket.destroy())
    })
    if (open) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('Postgres did not start')
}
