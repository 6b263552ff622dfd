import { chmod, mkdir, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { beforeEach, describe, expect, inject, test } from 'vitest'
import { containerName, dockerRunArgs, kafkaImage } from '../../src/broker/docker.ts'
import { ensureJars, jarFolder } from '../../src/broker/jars.ts'
import { javaVersion } from '../../src/broker/java.ts'
import { propertiesText, serverProperties } from '../../src/broker/properties.ts'
import { startBroker } from '../../src/broker/start.ts'
import type { HooktideError } from '../../src/core/error.ts'
import { brokerDeps, brokerOptions } from '../support/broker-options.ts'

let folder: string

beforeEach(async () => {
  await mkdir(inject('brokerRun'), { recursive: true })
  folder = await mkdtemp(join(inject('brokerRun'), 'ways-'))
})

async function tool(name: string, script: string) {
  const path = join(folder, name)
  await writeFile(path, `#!/bin/sh\n${script}\n`)
  await chmod(path, 0o755)
}

/** Starts with nothing but `folder` on PATH and no jars in the cache. */
async function attempt(env: Record<string, string> = {}) {
  const options = brokerOptions(join(folder, 'data'), {
    cacheDir: join(folder, 'cache'),
    env: { PATH: folder, ...env },
  })
  return startBroker(options, { ...brokerDeps, progress: () => undefined }).catch(
    (error: unknown) => error as HooktideError,
  )
}

describe('without a way to a broker the error names all three and what was found', () => {
  test('nothing installed', async () => {
    const error = await attempt()
    expect(error).toMatchObject({ code: 'broker.unavailable', message: 'no Kafka broker, and no way to start one' })
    expect((error as HooktideError).details).toEqual([
      '1. KAFKA_BROKERS=host:port of a broker you run: not set',
      `2. Docker (runs ${kafkaImage}): no docker on PATH`,
      '3. Java 17 or newer and Maven (runs Kafka as a process): no java on PATH; no mvn on PATH',
    ])
    expect((error as HooktideError).remedy).toContain('apt install')
  })

  test('Docker without its daemon, an old Java, no Maven', async () => {
    await tool('docker', 'echo "Cannot connect to the Docker daemon" >&2; exit 1')
    await tool('java', 'echo \'openjdk version "11.0.2" 2019-01-15\' >&2')
    const { details } = (await attempt()) as HooktideError
    expect(details[1]).toContain('the daemon does not answer: Cannot connect to the Docker daemon')
    expect(details[2]).toMatch(/java is Java 11; Kafka needs 17 or newer; no mvn on PATH$/)
  })

  test('a forced way is the only one tried', async () => {
    await tool('docker', 'echo ok')
    const local = (await attempt({ HOOKTIDE_BROKER: 'local' })) as HooktideError
    expect(local.details[1]).toContain('not tried, HOOKTIDE_BROKER=local')
    expect(local.details[2]).toContain('no java on PATH')
    const url = (await attempt({ HOOKTIDE_BROKER: 'url' })) as HooktideError
    expect(url.details[0]).toContain('not set')
    expect(url.details[1]).toContain('not tried')
    expect(url.remedy).toContain('HOOKTIDE_BROKER=url')
  })

  test('an unknown HOOKTIDE_BROKER is refused with the values it can have', async () => {
    expect(await attempt({ HOOKTIDE_BROKER: 'podman' })).toMatchObject({
      code: 'config.invalid',
      remedy: 'Set it to url, docker or local, or leave it empty.',
    })
  })

  test('a failing Maven is quoted and leaves nothing half-finished in the cache', async () => {
    await tool('java', 'echo \'openjdk version "21.0.1"\' >&2')
    await tool('mvn', 'echo "[ERROR] Could not transfer artifact"; exit 1')
    const error = (await attempt()) as HooktideError
    expect(error.message).toBe('Maven could not fetch Kafka (exit 1)')
    expect(error.details).toContain('[ERROR] Could not transfer artifact')
    const again = (await attempt()) as HooktideError
    expect(again.message).toBe(error.message)
  })
})

describe('fetching Kafka', () => {
  const java = 'echo \'openjdk version "21.0.1"\' >&2'
  // Counts its calls, takes a while, and writes one jar where it was told to.
  const mvn = `echo call >> "$0.calls"; for a in "$@"; do case "$a" in -DoutputDirectory=*) sleep 0.3; : > "\${a#*=}/kafka_x.jar";; esac; done`

  async function options() {
    await tool('java', java)
    await tool('mvn', mvn)
    const cacheDir = join(folder, 'cache')
    return brokerOptions(join(folder, 'data'), { cacheDir, env: { ...process.env, PATH: `${folder}:/usr/bin:/bin` } })
  }
  const asProcess = (pid: number) => ({
    ...brokerDeps,
    progress: () => undefined,
    system: { ...brokerDeps.system, pid },
  })

  test('happens once, however many processes need it at the same time', async () => {
    const both = await options()
    const folders = await Promise.all([process.pid, process.ppid].map((pid) => ensureJars(asProcess(pid), both)))
    expect(folders[0]).toBe(folders[1])
    expect(await readdir(folders[0] as string)).toEqual(['kafka_x.jar'])
    expect(await readFile(join(folder, 'mvn.calls'), 'utf8')).toBe('call\n')
    expect(await readdir(both.cacheDir)).toEqual([basename(folders[0] as string)])
  })

  test('starts again after a copy that was cut off, and after a holder of the lock that is gone', async () => {
    const given = await options()
    const wanted = await jarFolder(given)
    await mkdir(`${wanted}.partial-999999999/jars`, { recursive: true })
    await writeFile(`${wanted}.partial-999999999/jars/kafka_half.jar`, '')
    await writeFile(`${wanted}.lock`, '{"pid":999999999,"started":null}')
    expect(await ensureJars(asProcess(process.pid), given)).toBe(wanted)
    expect(await readdir(wanted)).toEqual(['kafka_x.jar'])
    expect(await readdir(given.cacheDir)).toEqual([basename(wanted)])
  })
})

test('KAFKA_BROKERS is taken as it stands, before all else, and never stopped', async () => {
  const broker = await attempt({ KAFKA_BROKERS: 'a:9092,b:9092' })
  expect(broker).toMatchObject({ brokers: 'a:9092,b:9092', kind: 'url', owned: false })
})

test('Docker: container and volume are named by the data folder, faults and stop go through the CLI', async () => {
  const calls = join(folder, 'calls')
  // Says yes to everything, but `run`, which fails: no daemon is needed to see what would be asked of it.
  await tool(
    'docker',
    `echo "$@" >> ${calls}; [ "$1" = run ] && { echo "port is already allocated" >&2; exit 125; }; exit 0`,
  )
  const error = (await attempt({ HOOKTIDE_BROKER: 'docker', PATH: `${folder}:/usr/bin:/bin` })) as HooktideError
  expect(error).toMatchObject({ code: 'broker.unavailable', message: 'docker run failed' })
  expect(error.details).toEqual(['port is already allocated'])
  const name = containerName(join(folder, 'data'))
  const lines = (await readFile(calls, 'utf8')).trim().split('\n')
  expect(lines.map((line) => line.split(' ')[0])).toEqual(['version', 'image', 'rm', 'run', 'stop', 'rm'])
  expect(lines[3]).toContain(`--name ${name} `)
  expect(lines[3]).toContain(`--volume ${name}:/var/lib/kafka/data`)
})

test('Docker: settings reach the image as KAFKA_ variables, the port on loopback only', () => {
  const options = brokerOptions('/data', { properties: { 'log.retention.hours': '24', 'a_b-c': 'x' } })
  const args = dockerRunArgs(options, 'hooktide-1', 9192)
  expect(args).toContain('127.0.0.1:9192:9192')
  expect(args).toContain('KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:9192')
  expect(args).toContain('KAFKA_PROCESS_ROLES=broker,controller')
  expect(args).toContain('KAFKA_LOG_RETENTION_HOURS=24')
  expect(args).toContain('KAFKA_A__B___C=x')
  expect(args.at(-1)).toBe(kafkaImage)
})

test('the image and the pom name the same Kafka', async () => {
  const pom = await readFile(brokerOptions('/data').pomFile, 'utf8')
  const version = /<artifactId>kafka_2\.13<\/artifactId>\s*<version>([^<]+)</.exec(pom)?.[1]
  expect(kafkaImage).toBe(`apache/kafka:${version}`)
})

test.each([
  ['openjdk version "17.0.15" 2025-04-15', 17],
  ['java version "1.8.0_402"', 8],
  ['openjdk version "21" 2023-09-19', 21],
  ['Picked up JAVA_TOOL_OPTIONS: -Dx\nopenjdk version "24.0.1"', 24],
  ['no such thing', null],
])('java -version %j is %s', (output, version) => {
  expect(javaVersion(output)).toBe(version)
})

test('a secure listener gets its own certificates, users and mechanisms; the plain one stays on loopback', () => {
  const properties = serverProperties(
    {
      logDir: '/d',
      plainPort: 1,
      controllerPort: 2,
      securePorts: { SECURE: 3 },
      tlsFiles: { ca: '/ca.pem', keystore: '/k.pem' },
    },
    {
      listeners: [
        { name: 'SECURE', protocol: 'SASL_SSL', mechanisms: ['PLAIN', 'SCRAM-SHA-512'], clientCertificate: true },
      ],
      plain: [{ user: 'ann', password: 'pw' }],
      authorizer: true,
    },
  )
  expect(properties).toMatchObject({
    listeners: 'PLAINTEXT://127.0.0.1:1,SECURE://127.0.0.1:3,CONTROLLER://127.0.0.1:2',
    'listener.security.protocol.map': 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL',
    'listener.name.secure.ssl.client.auth': 'required',
    'listener.name.secure.ssl.keystore.location': '/k.pem',
    'listener.name.secure.sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-512',
    'listener.name.secure.plain.sasl.jaas.config':
      'org.apache.kafka.common.security.plain.PlainLoginModule required user_ann="pw";',
    'super.users': 'User:ANONYMOUS',
  })
  expect(propertiesText({ a: 'C:\\x' })).toBe('a=C:\\\\x\n')
})
