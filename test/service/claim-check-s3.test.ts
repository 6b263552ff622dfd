import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { hooktide } from '../cli/support.ts'
import { noS3, s3Server } from '../support/s3.ts'
import { createWorld, until } from './world.ts'

test.skipIf(noS3 !== null)(
  'a large body goes through a bucket: put by produce, fetched by the deliverer, removed by erase; credentials are references',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'hooktide-s3-'))
    const { endpoint, stop } = await s3Server('bodies')
    const world = await createWorld({
      env: {
        HOOKTIDE_OBJECTS_S3_BUCKET: 'bodies',
        HOOKTIDE_OBJECTS_S3_PREFIX: 'claims/',
        HOOKTIDE_OBJECTS_S3_ENDPOINT: endpoint,
        HOOKTIDE_OBJECTS_S3_ACCESS_KEY_ID_REF: 'env:S3_ID',
        HOOKTIDE_OBJECTS_S3_SECRET_ACCESS_KEY_REF: 'env:S3_KEY',
        ...{ S3_ID: 'test', S3_KEY: 'test' },
      },
    })
    onTestFinished(async () => {
      await world.close()
      stop()
      await rm(folder, { recursive: true })
    })
    await world.up()
    await world.subscribe(world.subscription('s3', world.endpoint.at('/s3')))
    const large = JSON.stringify({ pad: 'x'.repeat(600_000) })
    const file = join(folder, 'large.json')
    await writeFile(file, large)
    const command = (...args: string[]) => hooktide(args, { env: world.env })
    expect(await command('produce', '--type', 'a', '--id', 'large', file)).toMatchObject({ code: 0 })
    await until('it has come', () => world.endpoint.delivered('/s3').length === 1)
    expect(world.endpoint.of('/s3')[0]?.body.toString() === large).toBe(true)

    const listed = async () => (await (await fetch(`${endpoint}/bodies?list-type=2`)).text()).match(/<Key>[^<]+/g) ?? []
    expect(await listed()).toEqual([expect.stringMatching(/^<Key>claims\/\d{4}-\d{2}-\d{2}\/[0-9a-f]{64}$/)])
    const erased = await command('erase', '--event', 'large', '--json')
    expect(JSON.parse(erased.out)).toMatchObject({ objects: { shared: 0 }, done: { objects: 1 } })
    expect(await listed()).toEqual([])
  },
  60_000,
)
