import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { killAll, run } from './process.ts'
import { createWorld, until, type World } from './world.ts'

let world: World
let bare: World
const folder = mkdtempSync(join(tmpdir(), 'hooktide-start-'))
beforeAll(async () => {
  ;[world, bare] = await Promise.all([createWorld(), createWorld({ apply: false })])
})
afterAll(async () => {
  await killAll()
  await Promise.all([world?.close(), bare?.close()])
  rmSync(folder, { recursive: true, force: true })
})

function textOf({ log }: ReturnType<typeof run>): string {
  return log.lines.map((line) => String(line.text ?? JSON.stringify(line))).join('\n')
}

test('an unreadable configuration ends the start with exit 2 and every problem: field, value, remedy', async () => {
  const file = join(folder, 'bad.yaml')
  writeFileSync(file, 'kafka:\n  sessionTimeout: soon\n  brokrs: [a:1]\nrouter:\n  maxEventBytes: 3GiB\nhttp: 7\n')
  const child = run(['up', '--config', file], {})
  const missing = run(['up', '--config', join(folder, 'none.yaml')], {})
  expect(await child.ended).toBe(2)
  const text = textOf(child)
  expect(text).toMatch(/bad\.yaml has 4 problems/)
  expect(text).toMatch(/kafka\.sessionTimeout \("soon"\): is not a duration; write a number with its unit/)
  expect(text).toMatch(/kafka\.brokrs.*brokers/)
  expect(text).toMatch(/router\.maxEventBytes \("3GiB"\): is out of range.*from 1KiB to 900KiB/)
  expect(text).toMatch(/http \(7\): is not a group of keys; write keys below it/)
  expect(text).toMatch(/Correct every line named/)
  expect(text).not.toMatch(/\bat .*\.ts:/)
  expect(await missing.ended).toBe(2)
  expect(textOf(missing)).toMatch(/none\.yaml can not be read.*\n.*Give the path of a readable YAML file/)
})

test('missing topics: the start is refused with each name and the command that makes them; afterwards it starts', async () => {
  const child = run(['up'], bare.env)
  expect(await child.ended).toBe(1)
  const text = textOf(child)
  expect(text).toMatch(/error: \d+ of \d+ topics are missing/)
  for (const topic of [bare.topics.deliveries, bare.topics.laneState, ...bare.topics.tiers, ...bare.topics.events])
    expect(text).toContain(topic)
  expect(text).toContain('Run `hooktide topics apply`.')
  await bare.apply()
  const service = await bare.up()
  expect(service.log.of('service.started')).toHaveLength(1)
  await service.stop()
})

test('a drifted topic: the start is refused with the difference and the remedy; apply mends it', async () => {
  const topic = world.topics.tiers[0] as string
  await world.admin.alterConfigs(topic, { 'message.timestamp.type': 'CreateTime', 'retention.ms': '60000' })
  const refused = await world.up().then(
    () => null,
    (error: Error & { code?: string; details?: string[]; remedy?: string }) => error,
  )
  expect(refused?.code).toBe('topic.drift')
  expect(refused?.details?.join('\n')).toMatch(
    new RegExp(`${topic}.*message.timestamp.type.*CreateTime.*LogAppendTime`),
  )
  expect(refused?.details?.join('\n')).toMatch(new RegExp(`${topic}.*retention.ms.*60000`))
  expect(refused?.remedy).toContain('hooktide topics apply')
  await world.apply()
  const service = await world.up()
  await service.stop()
})

test('a port in use: the start is refused by its name, and nothing stays behind in the group', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const refused = await world.up({ env: { HOOKTIDE_OBSERVE_PORT: String(port) } }).then(
    () => null,
    (error: Error & { code?: string; remedy?: string }) => error,
  )
  expect(refused?.code).toBe('config.invalid')
  expect(refused?.message).toContain(`127.0.0.1:${port}`)
  expect(refused?.message).toContain('EADDRINUSE')
  expect(refused?.remedy).toMatch(/another address or port/)
  const groups = await world.admin.groups(world.prefix)
  expect(groups.flatMap(({ members }) => members)).toEqual([])
  await new Promise((resolve) => server.close(resolve))
  const service = await world.up({ env: { HOOKTIDE_OBSERVE_PORT: String(port) } })
  expect(service.service.port).toBe(port)
  await until('ready', async () => (await service.page('/readyz')).status === 200)
  await service.stop()
})

test('no room for the largest event, or no directory for larger ones: the start is refused with the difference', async () => {
  const [topic] = world.topics.events
  await world.admin.alterConfigs(topic as string, { 'max.message.bytes': '262144' })
  const small = run(['up'], world.env)
  expect(await small.ended).toBe(1)
  expect(textOf(small)).toMatch(/max\.message\.bytes is 262144, must be at least 294912 .*: 32768 bytes too few/)
  expect(textOf(small)).toMatch(/Raise max\.message\.bytes of the topics, or lower router\.maxEventBytes/)
  await world.admin.alterConfigs(topic as string, { 'max.message.bytes': '1048588' })
  const away = run(['up'], { ...world.env, HOOKTIDE_OBJECTS_DIRECTORY: join(folder, 'not-mounted') })
  expect(await away.ended).toBe(2)
  expect(textOf(away)).toMatch(/objects\.directory \(.*not-mounted\): does not exist/)
})
