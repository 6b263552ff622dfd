export async function runRolling(_options: { brokers: string; folder: string; seed: number }): Promise<{
  lines: string[]
  ok: boolean
  json: object
}> {
  throw new Error('not yet')
}
