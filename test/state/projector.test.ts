import { describe } from 'vitest'
import { stateContract } from './contract.ts'
import { sqliteHome } from './state-test.ts'

describe('the delivery state in SQLite', () => stateContract(sqliteHome, 15))
