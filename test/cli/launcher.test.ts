import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { atEnd } from './support.ts'

const root = join(import.meta.dirname, '..', '..')
/** What Debian and others install: old enough to need the launcher. */
const systemNode = '/usr/bin/node'

function run(node: string, args: readonly string[], env: Record<string, string> = {}) {
  return new Promise<{ code: number; out: string; err: string }>((resolve) => {
    const options = { timeout: 60_000, env: { PATH: '/usr/bin:/bin', ...env } }
    execFile(node, args, options, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), out, err })
    })
  })
}

const versionOf = async (node: string) => (await run(node, ['-p', 'process.versions.node'])).out.trim()

/** Hooktide as npm would put it: below node_modules, with its dependencies beside it. */
async function installed(withDependencies: boolean): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hooktide-test-'))
  atEnd(() => rm(folder, { recursive: true }))
  const modules = join(folder, 'node_modules')
  await mkdir(join(modules, '.bin'), { recursive: true })
  for (const part of ['bin', 'src', 'schemas', 'topics', 'config', 'package.json'])
    await cp(join(root, part), join(modules, 'hooktide', part), { recursive: true })
  for (const name of withDependencies ? await readdir(join(root, 'node_modules')) : []) {
    if (name !== 'hooktide' && !name.startsWith('.'))
      await symlink(join(root, 'node_modules', name), join(modules, name))
  }
  const link = join(modules, '.bin', 'hooktide')
  await symlink(join('..', 'hooktide', 'bin', 'hooktide.js'), link)
  return link
}

describe('bin/hooktide.js', () => {
  test('runs in place on this Node and passes arguments and exit code on', async () => {
    const bin = join(root, 'bin', 'hooktide.js')
    expect((await run(process.execPath, [bin, 'version'])).out).toContain(`Node ${process.versions.node}`)
    expect(await run(process.execPath, [bin, 'statsu'])).toMatchObject({
      code: 2,
      err: "error: unknown command 'statsu'\n(Did you mean status?)\n",
    })
  })

  test('runs as an installed package, where Node would not strip types, without a word on stderr', async () => {
    const { code, out, err } = await run(process.execPath, [await installed(true), 'version'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain(`Node ${process.versions.node}`)
  })

  test('an old Node goes on with the one that came with the package, or says what to install', async (context) => {
    const version = await versionOf(systemNode)
    const [major, minor] = version.split('.').map(Number) as [number, number]
    if (version === '' || major > 22 || (major === 22 && minor >= 18)) {
      console.log(
        `skipped: ${systemNode} is ${version === '' ? 'not there' : version}; an old Node is needed to show this`,
      )
      context.skip()
    }
    const again = await run(systemNode, [await installed(true), 'version', '--json'])
    expect(again).toMatchObject({ code: 0, err: '' })
    expect(Number(JSON.parse(again.out).node.split('.')[0])).toBeGreaterThanOrEqual(22)
    const bare = await run(systemNode, [await installed(false), 'version'])
    expect(bare.code).toBe(1)
    expect(bare.err).toContain(`error: Node 22.18 or newer is needed, this is ${version}`)
  })
})
