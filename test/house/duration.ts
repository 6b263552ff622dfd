/** `45s`, `1m30s` as compose writes them, in ms; NaN for anything else. */
export function durationMs(text: string | undefined): number {
  const match = /^(?:(\d+)m)?(?:(\d+)s)?$/.exec(text ?? '')
  if (match === null || text === '') return Number.NaN
  return (Number(match[1] ?? 0) * 60 + Number(match[2] ?? 0)) * 1000
}
