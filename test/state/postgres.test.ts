import { afterAll, describe, onTestFinished } from 'vitest'
import { systemClock } from '../../src/app.ts'
import { PostgresHome } from '../../src/state/postgres-home.ts'
import { startPostgres } from '../support/postgres.ts'
import { stateContract } from './contract.ts'

const postgres = await startPostgres()
let schemas = 0
afterAll(async () => postgres?.stop())

describe.skipIf(postgres === null)('the delivery state in Postgres', () => {
  stateContract(() => {
    const home = new PostgresHome(postgres?.url ?? '', `state_${process.pid}_${++schemas}`, systemClock)
    onTestFinished(() => home.close())
    return home
  }, 4)
})
