// Starts a broker in the folder given as argument, prints its facts and then only lives: to be killed by a test.
import { startOwnBroker } from '../../src/broker/start.ts'
import { brokerDeps, brokerOptions } from '../support/broker-options.ts'

const env = { ...process.env, KAFKA_BROKERS: '', HOOKTIDE_BROKER: 'local' }
const broker = await startOwnBroker(brokerOptions(process.argv[2] as string, { env, heapMb: 256 }), brokerDeps)
process.stdout.write(`${JSON.stringify({ brokers: broker.brokers, pid: broker.pid })}\n`)
