import { mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { claimFor } from '../../src/core/claim.ts'
import { DirectoryStore } from '../../src/objects/directory-store.ts'

const made: string[] = []
async function directory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'hooktide-objects-'))
  made.push(path)
  return path
}
afterEach(async () => {
  for (const path of made.splice(0)) await rm(path, { recursive: true, force: true })
})

const body = Buffer.from('a body')
const day = 86_400_000
const claim = claimFor(body, 20_000 * day)

test('what is put comes back; put again, it is there once', async () => {
  const root = await directory()
  const store = new DirectoryStore(root)
  expect(await store.problem('write')).toBe(null)
  await store.put(claim, body)
  await store.put(claim, body)
  expect(await store.get(claim)).toEqual({ t: 'found', body })
  expect(await readdir(join(root, claim.key.split('/')[0] as string))).toHaveLength(1)
})

test('no object is missing; no directory is a store that is away', async () => {
  const root = await directory()
  expect(await new DirectoryStore(root).get(claim)).toEqual({ t: 'missing' })
  expect(await new DirectoryStore(join(root, 'not-mounted')).get(claim)).toMatchObject({ t: 'unavailable' })
})

test('another size or digest is refused', async () => {
  const root = await directory()
  const store = new DirectoryStore(root)
  await store.put(claim, Buffer.from('b body'))
  expect(await store.get(claim)).toMatchObject({ t: 'bad', detail: expect.stringMatching(/digest/) })
  await store.put(claim, Buffer.from('a longer body'))
  expect(await store.get(claim)).toMatchObject({ t: 'bad', detail: expect.stringMatching(/13 bytes, claimed were 6/) })
})

test('no key and no link leads out of the directory', async () => {
  const [root, outside] = [await directory(), await directory()]
  await writeFile(join(outside, 'secret'), body)
  await symlink(join(outside, 'secret'), join(root, 'file'))
  await symlink(outside, join(root, 'folder'))
  const store = new DirectoryStore(root)
  for (const key of ['file', 'folder/secret', '../secret', `..${outside}/secret`]) {
    expect(await store.get({ ...claim, key }), key).toMatchObject({ t: 'bad' })
  }
})

test('days are removed as a whole, up to a time', async () => {
  const root = await directory()
  const store = new DirectoryStore(root)
  for (const n of [1, 2, 3]) await store.put(claimFor(body, n * day), body)
  await store.put({ ...claimFor(body, 0), key: 'reports/1970' }, body)
  const days = ['1970-01-02', '1970-01-03']
  expect(await store.removeBefore(3 * day, true)).toEqual(days)
  expect(await readdir(root)).toHaveLength(4)
  expect(await store.removeBefore(3 * day, false)).toEqual(days)
  expect(await readdir(root)).toEqual(['1970-01-04', 'reports'])
})

test('one object is removed; what is not there is told, what leads out of the directory stays', async () => {
  const [root, outside] = [await directory(), await directory()]
  await writeFile(join(outside, 'secret'), body)
  await symlink(outside, join(root, 'folder'))
  const store = new DirectoryStore(root)
  await store.put(claim, body)
  expect([await store.remove(claim.key), await store.remove(claim.key), await store.get(claim)]).toEqual([
    true,
    false,
    { t: 'missing' },
  ])
  expect([await store.remove('folder/secret'), await store.remove('../secret')]).toEqual([false, false])
  expect(await readdir(outside)).toEqual(['secret'])
  await expect(new DirectoryStore(join(root, 'not-mounted')).remove(claim.key)).rejects.toThrow('ENOENT')
})

test('at the start: a root that is not there or is a file is told, and nothing is made or left behind', async () => {
  const root = await directory()
  const [none, file] = [join(root, 'none'), join(root, 'file')]
  await writeFile(file, '')
  expect(await new DirectoryStore(none).problem('read')).toBe('does not exist')
  expect(await new DirectoryStore(none).problem('write')).toBe('does not exist')
  expect(await new DirectoryStore(file).problem('read')).toBe('is no directory')
  expect(await new DirectoryStore(root).problem('write')).toBe(null)
  expect(await readdir(root)).toEqual(['file'])
})
